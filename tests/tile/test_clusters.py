"""Cluster scope in one, two and three dimensions: a group axis for each, z, y, x, and then warps and lanes."""

from __future__ import annotations

import numpy as np
import pytest

import ptxtile as pt
from ptxtile import S, cbx, cby, cbz, laneid, tile, warpid
from tile.running import failure, machines, message

AXES = {"x": cbx, "y": cby, "z": cbz}


@machines
@pytest.mark.parametrize(
    ("cluster", "order"), [((4, 1, 1), "x"), ((2, 2, 1), "yx"), ((2, 1, 2), "zyx"), ((2, 2, 2), "zyx")]
)
def test_each_cta_has_its_own_part(cluster, order, device):
    extents = tuple(cluster["xyz".index(axis)] for axis in order)
    shape = (*extents, 2, 32, 2)
    names = tuple(1 @ AXES[axis] for axis in order)

    @pt.kernel(grid=cluster, block=64, cluster=cluster)
    def copy(A: pt.Tensor(shape, pt.float32), Out: pt.Tensor(shape, pt.float32)):
        r = pt.alloc_local(shape, pt.float32, layout=S[shape : (*names, 1 @ warpid, 1 @ laneid, 1)])
        tile.apply("ld.global.v2.f32", r, A, scope="cluster")
        one = r.view(*shape, 1)
        tile.apply("add.rn.f32", one, one, 1.0, scope="cluster")
        tile.apply("st.global.v2.f32", Out, r, scope="cluster")

    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    out = np.zeros_like(a)
    copy.launch(a, out, device=device)
    np.testing.assert_array_equal(out, a + 1)


def test_cluster_scope_needs_a_cluster():
    def body(_):
        r = pt.alloc_local(
            (1, 1, 32, 1), pt.float32, layout=S[(1, 1, 32, 1) : (1 @ cbx, 1 @ warpid, 1 @ laneid, 1)]
        )
        tile.apply("neg.f32", r, r, scope="cluster")

    assert message(failure(body, 32)) == "neg.f32: cluster scope needs cluster= on the kernel"


def test_another_owner_of_a_cta():
    def body(_):
        shape = (2, 1, 32, 1)
        r = pt.alloc_local(shape, pt.float32, layout=S[shape : (1 @ cby, 1 @ warpid, 1 @ laneid, 1)])
        tile.apply("neg.f32", r, r, scope="cluster")

    text = message(failure(body, 32, cluster=(2, 1, 1)))
    assert (
        text
        == "neg.f32: operand d: owner axis cby does not fit: cluster scope does not tell the executing thread's"
    )
