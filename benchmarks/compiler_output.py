"""What compilers write, read by ptxtile: diagnostics, and the code that the assembler makes of the text ptxtile writes.

    python benchmarks/compiler_output.py [--folder DIR] [--sample N] [--modules DIR …]

The CUDA compiler and Triton come from PyPI, each into an environment of its own; their input is `corpora/cuda/*.cu` and
`corpora/triton_kernels.py`. `--modules` names folders with PTX of other projects (NAME.ptx; NAME.target beside it names
the target to assemble for, if it is not the module's own). Of every module that ptxas takes, `check_text` must say
nothing, and the text written from the parsed module must assemble to the same SASS.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import harness
import peers

from ptxtile import check_text, parse

CORPORA = harness.ROOT / "benchmarks" / "corpora"
BIN = Path(sysconfig.get_paths()["purelib"], "nvidia", "cu13", "bin")
MODES = {
    "release": [],
    "lines": ["-lineinfo"],
    "debug": ["-G"],
    "fast": ["-use_fast_math", "-Xcicc", "-O1"],
}
# target, modes: every mode somewhere, every target in release
TARGETS = {
    "sm_75": ("release", "debug"),
    "sm_80": ("release", "fast"),
    "sm_86": ("release",),
    "sm_89": ("release", "lines"),
    "sm_90": ("release", "debug"),
    "sm_90a": ("release", "lines"),
    "sm_100": ("release",),
    "sm_100a": ("release", "fast", "debug"),
    "sm_103a": ("release",),
    "sm_120": ("release", "lines"),
    "sm_120a": ("release", "debug"),
}


@dataclass
class Count:
    """What became of the modules of one source."""

    modules: int = 0
    lines: int = 0
    refused: int = 0
    diagnostics: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    other_code: list[str] = field(default_factory=list)
    same_code: int = 0


def compile_cuda(folder: Path) -> list[str]:
    """Every source for every target and mode that it is made for; what nvcc refused is named."""
    python = Path(peers.python("cuda"))
    root = next(python.parents[1].glob("lib/python3*/site-packages/nvidia/cu13"))
    failed: list[str] = []
    for source in sorted((CORPORA / "cuda").glob("*.cu")):
        for target, modes in TARGETS.items():
            if source.stem == "hopper" and int(re.sub(r"\D", "", target)) < 90:
                continue
            for mode in modes:
                out = folder / f"{source.stem}.{target}.{mode}.ptx"
                if out.exists():
                    continue
                given = [*MODES[mode], "-ptx", "-rdc=true", "-arch", target, f"-I{root}/include/cccl", "-w"]
                if target == "sm_90a":
                    given.append("-DHOPPER_A")
                made = subprocess.run(
                    [str(root / "bin" / "nvcc"), *given, "-o", str(out), str(source)],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if made.returncode:
                    said = made.stderr.strip().replace(str(harness.ROOT), "")
                    failed.append(f"{out.name}: {said[:200]}")
    return failed


# The assembler numbers what a function declares by where it stands in the text: $___ZZ6kernelE4tile__515.
_SERIAL = re.compile(r"(\$_[A-Za-z0-9_$.]*__)[0-9]+")


def sass(text: str, target: str, folder: Path) -> str | None:
    """The code that ptxas makes of a module, or None if it refuses it."""
    source, cubin = folder / "module.ptx", folder / "module.cubin"
    source.write_text(text, encoding="utf-8")
    command = [str(BIN / "ptxas"), "-w", "-arch", target, str(source), "-o", str(cubin)]
    if _version(text) >= (3, 1):  # what is declared elsewhere may stay open
        command.insert(1, "-c")
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode:
        return None
    shown = subprocess.run([str(BIN / "nvdisasm"), "-c", str(cubin)], capture_output=True, check=True)
    text = re.sub(r"^\t\.headerflags.*$", "", shown.stdout.decode(), flags=re.MULTILINE)
    return _SERIAL.sub(r"\1", text)


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", text, re.MULTILINE)
    return tuple(map(int, found.groups())) if found else ()


def judge(path: Path, count: Count, folder: Path) -> None:
    """One module."""
    text = path.read_text(encoding="utf-8")
    named = re.search(r"^\s*\.target\s+(\w+)", text, re.MULTILINE)
    beside = path.with_suffix(".target")
    target = beside.read_text(encoding="utf-8").strip() if beside.exists() else named[1] if named else ""
    before = sass(text, target, folder)
    if before is None:
        count.refused += 1
        return
    count.modules += 1
    count.lines += text.count("\n")
    found = check_text(text)
    if found:
        count.diagnostics.append(f"{path.name}: {len(found)}, first {found[0]}")
    try:
        written = str(parse(text))
    except ValueError as error:
        count.unread.append(f"{path.name}: {error}")
        return
    if sass(written, target, folder) == before:
        count.same_code += 1
    else:
        count.other_code.append(path.name)


def sources(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, list[Path]]]:
    """The name of each source, and its modules."""
    yield "nvcc", sorted((folder / "cuda").glob("*.ptx"))
    yield "triton", sorted((folder / "triton").glob("*.ptx"))
    for place in given.modules:
        yield place.name, sorted(place.glob("*.ptx"))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--folder", type=Path, default=Path(tempfile.gettempdir(), "ptxtile-compiler-output")
    )
    arguments.add_argument("--sample", type=int, default=0, help="so many modules of each source, at random")
    arguments.add_argument("--modules", type=Path, nargs="*", default=[])
    given = arguments.parse_args()
    (given.folder / "cuda").mkdir(parents=True, exist_ok=True)
    failed = compile_cuda(given.folder / "cuda")
    if not (given.folder / "triton").exists():
        command = [peers.python("triton"), str(CORPORA / "triton_kernels.py"), str(given.folder / "triton")]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    counts: dict[str, Count] = {}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        for name, paths in sources(given, given.folder):
            counts[name] = Count()
            chosen = random.Random(0).sample(paths, given.sample) if 0 < given.sample < len(paths) else paths
            for path in chosen:
                judge(path, counts[name], Path(scratch))
            print(name, json.dumps(vars(counts[name]), indent=1), flush=True)
    version = subprocess.run(
        [str(BIN / "ptxas"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    kernels = sum(each.read_text().count("__global__ ") for each in (CORPORA / "cuda").glob("*.cu"))
    said = {
        "benchmark": "compiler_output",
        "command": "python benchmarks/compiler_output.py --modules …",
        "machine": harness.machine(),
        "ptxas": version.strip().splitlines()[-1],
        "peers": {name: list(peers.PEERS[name]) for name in ("cuda", "triton")},
        "cuda kernels": kernels,
        "nvcc refused": failed,
        "seconds": round(time.perf_counter() - start),
        "results": {name: vars(count) for name, count in counts.items()},
    }
    path = harness.RESULTS / "compiler_output.json"
    path.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    print("kept in", path.relative_to(harness.ROOT))
    sys.exit(any(each.diagnostics or each.unread or each.other_code for each in counts.values()))


if __name__ == "__main__":
    main()
