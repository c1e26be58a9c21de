"""One round with apache-tvm-tirx: a kernel as in examples/, compiled to CUDA C++ source, where it stops without nvcc.

`argv[1]` names the kernel. `tirx.compile` also makes the host's part; the function is parsed before, once.
"""

import sys
from importlib.metadata import version

import tvm_tirx
from tvm_tirx.script import tirx as T
from tvm_tirx.tirx.layout import Axis, S, TileLayout
from worker import serve

laneid, warpid = Axis.get("laneid"), Axis.get("warpid")
REG_LAYOUT = TileLayout(S[(2, 32, 4) : (1 @ warpid, 1 @ laneid, 1)])


@T.function
def affine_fma(A: T.Tensor((4, 1), "float32"), Out: T.Tensor((4, 1), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=1))
    r = T.alloc_local((4, 1), "float32", layout="default")
    T.cuda.tile.apply(T.ptx["ld.global.f32"], r, A)
    T.cuda.tile.apply(T.ptx["fma.rn.f32"], r, r, T.float32(2), T.float32(1))
    T.cuda.tile.apply(T.ptx["st.global.f32"], Out, r)


@T.function
def silu_affine(x: T.float32, scale: T.float32, bias: T.float32) -> T.float32:
    y = x / (T.float32(1) + T.exp(-x))
    return y * scale + bias


@T.function
def activation(A: T.Tensor((2, 32, 4), "float32"), Out: T.Tensor((2, 32, 4), "float32")):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
    r = T.alloc_local((2, 32, 4), "float32", layout=REG_LAYOUT)
    T.cuda.tile.apply(T.ptx["ld.global.v4.b32"], r, A, scope="cta")
    T.cuda.tile.ewise(silu_affine, r, r, T.float32(2), T.float32(1), scope="cta")
    T.cuda.tile.apply(T.ptx["st.global.v4.b32"], Out, r, scope="cta")


TARGET = tvm_tirx.target.Target({"kind": "cuda", "arch": "sm_90"})
KERNEL = {"affine_fma": affine_fma, "activation": activation}[sys.argv[1]]


def work():
    return tvm_tirx.tirx.compile(KERNEL, target=TARGET, pipeline="tirx").mod.imports[0].inspect_source()


work()
serve(
    lambda: work,
    {
        "apache-tvm-tirx": version("apache-tvm-tirx"),
        "python": sys.version.split()[0],
        "kernels": [sys.argv[1]],
    },
)
