"""Makes the table of instructions in docs/emulator.md: `python docs/build_emulator.py` writes it.

A line for each `instruction` block of `grammar/instructions/`: what the emulator's result is, what an H200 said of it
(`benchmarks/results/h200/`), and what is missing (`ptxtile/emulator/missing.txt`). A test holds the page to the code.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections import Counter, defaultdict
from functools import cache as cache_of_function
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "emulator.md"
RESULTS = ROOT / "benchmarks" / "results" / "h200"
START, END = "<!-- made by docs/build_emulator.py -->", "<!-- end -->"
LOOKED_AT = 50
"""Spellings of a glob of missing.txt that are looked at to say which blocks it belongs to."""
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import device_semantics_cases as semantics_cases  # noqa: E402 - the checkout's own files
import device_semantics_record as semantics_record  # noqa: E402
import device_semantics_text as semantics_text  # noqa: E402

from ptxtile import isa  # noqa: E402
from ptxtile.emulator import numeric_float  # noqa: E402
from ptxtile.emulator.semantics.kinds import kind_of  # noqa: E402
from ptxtile.emulator.support import missing  # noqa: E402
from ptxtile.isa import cache  # noqa: E402

Key = tuple[str, str]
"""Section and name of a block."""

SUM = "one aligned sum (see above)"
NOTHING = "does nothing"
LATE = "exact, and late"
RESULT = {
    "brkpt": NOTHING, "nanosleep": NOTHING, "pmevent": f"closed list: {NOTHING}", "trap": "stops the program",
    "setmaxnreg": "exact: counts, and a pool a CTA",
    "griddepcontrol": "exact: the launch before has ended",
    "fabric.submit": "exact, of one device", "fabric.wait": "exact, of one device",
    "prefetch": NOTHING, "prefetchu": NOTHING, "applypriority": NOTHING, "createpolicy": "a policy without effect",
    "activemask": "the lanes that run together, which may be others on a device",
    "cp.async": LATE, "cp.async.bulk": LATE, "cp.reduce.async.bulk": LATE, "st.async": LATE, "red.async": LATE,
    "cp.async.bulk.tensor": LATE, "cp.reduce.async.bulk.tensor": LATE, "cp.async.bulk.prefetch": NOTHING,
    "cp.async.bulk.prefetch.tensor": NOTHING,
    "mma": SUM, "wmma.mma": SUM, "wgmma.mma_async": f"{SUM}, late", "wmma.load": "a layout of the emulator's own",
    "wmma.store": "a layout of the emulator's own", "tcgen05.mma": f"{SUM}, late; no hardware asked",
    "tcgen05.mma.ws": f"{SUM}, late; no hardware asked",
    "multimem.ld_reduce": "exact, of one replica", "multimem.st": "exact, of one replica",
    "multimem.red": "exact, of one replica",
    "tex": "exact, by points of one and two dimensions", "tld4": "exact, of two dimensions",
    "txq": "exact", "suld": "exact, of one and two dimensions", "sust": "exact, of one and two dimensions",
    "sured": "exact, of one and two dimensions", "suq": "exact",
    "clusterlaunchcontrol.try_cancel": "exact, late; the seed says how many clusters are left",
    "elect.sync": "the lowest lane of the mask",
    "9.7.5.1": "exact; no hardware asked", "9.7.5.2": "exact; no hardware asked", "9.7.5": "exact; no hardware asked",
    "9.7.5.3": "exact; no hardware asked",
}  # fmt: skip
"""Of blocks whose result is not just exact, by name or by section."""
CLOSED = ("alloca", "stacksave", "stackrestore", "tex", "tld4", "txq", "suld", "sust", "sured")


@cache_of_function
def blocks() -> tuple[Key, ...]:
    """Section and name of every block, in the order of the table's files."""
    paths = sorted((ROOT / "grammar" / "instructions").glob("*.isa"))
    return tuple((record[2], record[0]) for path in paths for record in cache.load(path, "chapter"))


@cache_of_function
def _named(opcode: str) -> tuple[Key, ...]:
    return tuple(key for key in blocks() if key[1].partition(".")[0] == opcode)


@cache_of_function
def _key(spelling: str) -> Key | None:
    """The block of a spelling: of those with its name the one with the nearest section, then the longest name."""
    if not isa.is_valid(spelling):
        return None
    section = isa.validate(spelling).section.replace(
        "9.7.2.", "9.7.1."
    )  # with .cc: in the blocks of integers
    opcode = spelling.partition(".")[0]
    named = [key for key in _named(opcode) if f"{spelling}.".startswith(f"{key[1]}.")]
    return max(named, key=lambda key: (_alike(section, key[0]), len(key[1])), default=None)


def _alike(one: str, other: str) -> int:
    pairs = zip(one.split("."), other.split("."))
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _load(name: str) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return kept


class Judged:
    """What an H200 said, by block: forms asked about and forms alike in every bit, and the bounded ones."""

    def __init__(self) -> None:
        self.asked: Counter[Key] = Counter()
        self.alike: Counter[Key] = Counter()
        self.bounded: defaultdict[Key, list[str]] = defaultdict(list)
        self._values()
        self._lanes()
        self._textures()
        self._matrices()

    def _count(self, spelling: str, alike: bool) -> None:
        key = _key(spelling)
        if key is not None:
            self.asked[key] += 1
            self.alike[key] += alike

    def _values(self) -> None:
        chapters = semantics_cases.CHAPTERS.values()
        bounds = {case.spelling: case for make in chapters for case in make() if case.ulp is not None}
        kept = _load("semantics.json")
        for name, elements, agree, _, worst in kept["cases"]:
            spelling = name.split()[0]
            key = _key(spelling)
            if spelling in bounds and key is not None:
                case = bounds[spelling]
                apart = _apart(case, kept["seed"], kept["offsets"][name]) if case.absolute else 0.0
                self.bounded[key].append(_bound(case, worst, apart))
            else:
                self._count(spelling, agree == elements)

    def _lanes(self) -> None:
        for text, elements, _, agree in _load("lanes.json")["cases"] + _load("atomics.json")["cases"]:
            words = [word for word in re.split(r"[\s;]+", text) if "." in word and not word.startswith("@")]
            words = [word for word in words if word.startswith("atom.")] or words
            merged = re.match(r"v[a-z]+\.\S+ r5\.h1,", text)  # the assembler of its driver gets these wrong
            if words and not merged and not text.startswith("@p1 bra"):
                self._count(words[0], agree == elements)

    def _textures(self) -> None:
        for case in _load("textures.json")["cases"]:
            words = re.findall(r"(?:tex|tld4|txq|suld|sust|sured)\.[\w.]+", case["case"])
            self._count(words[0], case["agree"] == case["words"])

    def _matrices(self) -> None:
        for case in _load("tensor_core_proof.json")["cases"]:
            self._count(case["case"].split("#")[0].split()[0], case["agree"] == case["elements"])

    def said(self, key: Key) -> str:
        """The cell of a block."""
        parts = []
        if self.asked[key]:
            alike = "every bit" if self.alike[key] == self.asked[key] else f"{self.alike[key]} in every bit"
            parts.append(f"{self.asked[key]} case{'s' * (self.asked[key] > 1)}, {alike}")
        return "; ".join([*parts, *self.bounded[key]])


def _apart(case: semantics_cases.Case, seed: int, packed: str) -> float:
    """The largest difference of a device's answers from the emulator's, where the ulp do not say enough."""
    arrays = semantics_text.operands(case, seed)
    own = semantics_text.expected(case, arrays)[0]
    offsets = semantics_record.unpack_offsets(packed, own)
    kind = kind_of("." + case.targets[0])
    assert kind is not None
    import numpy as np

    steps = abs(offsets.view(f"i{offsets.itemsize}").astype(float))
    with np.errstate(invalid="ignore"):
        apart = abs(
            numeric_float.to_double(own + offsets, kind.form) - numeric_float.to_double(own, kind.form)
        )
    return max(
        (float(error) for error, step in zip(apart, steps) if step > case.ulp and error < 1), default=0.0
    )


def _bound(case: semantics_cases.Case, worst: float, apart: float) -> str:
    """Bound and measured maximum of an approximation, in ulp, or absolute where that is larger."""
    if case.spelling.endswith("approx.ftz.f64"):
        return (
            f"`{case.spelling}` within {case.ulp / 2.0**32:g} · 2^32 ulp, measured {worst / 2.0**32:g} · 2^32"
        )
    if case.absolute:
        bound = f"{case.ulp:g} ulp or 2^{math.log2(case.absolute):g}"
        return f"`{case.spelling}` within {bound}, measured {worst:g} ulp or {apart:.1e}"
    return f"`{case.spelling}` within {case.ulp:g} ulp, measured {worst:g}"


def lacking() -> dict[Key, list[str]]:
    """By block: the globs of missing.txt that name spellings of it."""
    found: defaultdict[Key, list[str]] = defaultdict(list)
    for glob in missing():
        keys = {_key(spelling) for spelling in itertools.islice(isa.forms(glob), LOOKED_AT)}
        for key in keys:
            if key is not None:
                found[key].append(glob)
    return found


def table() -> str:
    """The whole table."""
    judged, without = Judged(), lacking()
    lines = ["| instruction | section | result | of an H200 | missing |", "|---|---|---|---|---|"]
    for key in blocks():
        section, name = key
        opcode, globs = name.partition(".")[0], without.get(key, [])
        whole = any(glob == f"{opcode}.*" for glob in globs)
        usual = "bounded" if judged.bounded[key] and not judged.asked[key] else "exact"
        result = RESULT.get(section) or RESULT.get(name, usual)
        if name not in RESULT and judged.bounded[key] and judged.asked[key]:
            result = "exact; approximations bounded"
        if whole:
            result = "closed list" if opcode in CLOSED else "missing"
        label = "closed list: " if opcode in CLOSED and globs and not whole else ""
        gone = label + ", ".join(f"`{glob}`" for glob in globs)
        lines.append(f"| `{name}` | {section} | {result} | {judged.said(key)} | {gone} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n{table()}\n{END}{after}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
