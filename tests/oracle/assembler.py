"""NVIDIA's assembler as an oracle: which instruction lines does it take, for a target, in a PTX version?

ptxas reports every semantic error of a module with its line number, so a thousand lines cost one run, or two: lines with
errors are set aside and the rest goes again, until there is none. A syntax error is fatal and hides the others. The last line of each module is always
wrong, so that no code is generated; what only code generation refuses is asked with `assembles`, line by line.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path

CHUNK = 2000
_SENTINEL = "no_such_instruction"
_MESSAGE = re.compile(r"^ptxas (?:.*?), line (\d+); (error|fatal)\s*: (.*)$", re.M)

BANKS = {"pred": "p", "b8": "c", "b16": "h", "b32": "r", "b64": "d", "b128": "q", "f32": "f", "f64": "e"}
"""Register types to the names that lines use: p1, c1, h1, …"""

_MODULE = """.global .align 128 .b8 in_global[4096];
.shared .align 128 .b8 in_shared[4096];
.const .align 16 .b8 in_const[1024];
.global .texref a_texref;
.global .surfref a_surfref;
.func called0 () { ret; }
.func called1 (.reg .b32 a) { ret; }
.func (.reg .b32 o) called2 (.reg .b32 a) { mov.b32 o, a; ret; }
.func (.reg .b32 o) called3 () { mov.b32 o, 0; ret; }
"""
_BODY = (
    ".param .align 16 .b8 out_param[128];\n.local .align 16 .b8 in_local[128];\n"
    "targets: .branchtargets there, there;\n"
    "like0: .callprototype _ ();\nlike1: .callprototype _ (.reg .b32 _);\n"
    "like2: .callprototype (.reg .b32 _) _ (.reg .b32 _);\nlike3: .callprototype (.reg .b32 _) _ ();\n"
)


def independent(line: str) -> bool:
    """Whether a line names a sampler: those stand in modules of their own, in texmode_independent."""
    return "a_samplerref" in line or "[a_texref, d" in line


def head(target: str, version: str, samplers: bool = False) -> str:
    """What stands before the statements: names for them to use. Before PTX ISA 8.3 there is no .b128 register."""
    if samplers:
        target, more = f"{target}, texmode_independent", ".global .samplerref a_samplerref;\n"
    else:
        more = ""
    major, minor = map(int, version.split("."))
    banks = {kind: bank for kind, bank in BANKS.items() if kind != "b128" or (major, minor) >= (8, 3)}
    registers = "".join(
        f".reg .{kind} {bank}<{400 if bank in 'rf' else 80}>;\n" for kind, bank in banks.items()
    )
    return (
        f".version {version}\n.target {target}\n.address_size 64\n{more}{_MODULE}"
        f".visible .entry k(.param .align 64 .b8 in_param[128])\n.maxntid 128, 1, 1\n{{\n{registers}{_BODY}"
    )


def find() -> Path | None:
    """ptxas: PTXTILE_PTXAS, or the wheels nvidia-cuda-nvcc (cu13) and nvidia-cuda-nvcc-cu12, or the PATH."""
    named = os.environ.get("PTXTILE_PTXAS")
    if named:
        return Path(named)
    spec = util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for inside in ("cu13/bin/ptxas", "cuda_nvcc/bin/ptxas"):
            for suffix in ("", ".exe"):
                path = Path(folder) / (inside + suffix)
                if path.is_file():
                    return path
    onpath = shutil.which("ptxas")
    return Path(onpath) if onpath else None


class Assembler:
    """One ptxas. `runs` counts how often it was started."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = 0

    @functools.cached_property
    def release(self) -> str:
        """The release, as "V13.5.37"; "" if it does not say."""
        told = subprocess.run([self.path, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"V[\d.]+", told)
        return found[0] if found else ""

    def _run(self, text: str, target: str) -> tuple[bool, str]:
        self.runs += 1
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "m.ptx"
            source.write_text(text, encoding="utf-8")
            done = subprocess.run(
                [self.path, "-arch", target, "-O0", "-w", source, "-o", Path(folder) / "m.cubin"],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        return done.returncode == 0, done.stderr

    def refusals(self, lines: Sequence[str], target: str, version: str) -> dict[int, str]:
        """The numbers (from 0) of the lines that are refused, with the first message about each."""
        found: dict[int, str] = {}
        for samplers in (False, True):
            these = [number for number, line in enumerate(lines) if independent(line) is samplers]
            for start in range(0, len(these), CHUNK):
                self._judge(lines, these[start : start + CHUNK], target, version, found)
        return found

    def _judge(
        self, lines: Sequence[str], these: list[int], target: str, version: str, found: dict[int, str]
    ) -> None:
        if not these:
            return
        before = head(target, version, independent(lines[these[0]]))
        first = before.count("\n") + 1
        body = "\n".join(lines[i] for i in these)
        _, told = self._run(f"{before}{body}\nthere:\nret;\n{_SENTINEL};\n}}\n", target)
        fatal: int | None = None
        located = _SENTINEL in told
        for number, severity, message in _MESSAGE.findall(told):
            place = int(number) - first
            if 0 <= place < len(these):
                located = True
                found.setdefault(these[place], message)
                fatal = place if severity == "fatal" else fatal
            elif int(number) <= 2:  # the target or the version itself
                found.update((i, message) for i in these)
                return
        if fatal is None and located and any(i in found for i in these):
            # what stands for several instructions is looked into only where nothing else is wrong
            self._judge(lines, [i for i in these if i not in found], target, version, found)
        elif fatal is not None:
            self._judge(lines, these[:fatal], target, version, found)
            self._judge(lines, these[fatal + 1 :], target, version, found)
        elif not located:  # a crash, or a message that names no line
            if len(these) == 1:
                found[these[0]] = "not located: " + told.strip()[:200]
                return
            half = len(these) // 2
            self._judge(lines, these[:half], target, version, found)
            self._judge(lines, these[half:], target, version, found)

    def assembles(self, line: str, target: str, version: str) -> bool:
        """Whether the line alone gives code."""
        before = head(target, version, independent(line))
        return self._run(f"{before}{line}\nthere:\nret;\n}}\n", target)[0]
