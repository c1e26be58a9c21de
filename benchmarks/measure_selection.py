"""The spellings that the tables of `ptxtile measure` hold: every family, the long ones sampled evenly.

    python benchmarks/measure_selection.py sm_90a > build/spellings.txt
    ptxtile measure --spellings build/spellings.txt --prepare build/measure
    ptxtile measure --prepared build/measure --json h200.jsonl --html h200.html

Each rule is a glob over spellings, how many modifiers at most, and the share that is kept: one in `every`, taken at
even distances of the sorted list, so that the choice is the same on every machine.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import ptxtile as pt


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the selection; `words` leaves out modifiers that only hint at caches."""

    pattern: str
    every: int = 1
    most: int = 99
    without: tuple[str, ...] = ()


_HINTS = (".v8.", "L1::", "L2::", "mmio", ".volatile", ".param", ".local", ".sys.", ".cluster.")
_WHOLE = (
    "fma abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos div dp2a dp4a ex2 fns lg2 lop3 mad mad24 "
    "madc match max min mul mul24 neg not or popc prmt rcp redux rem rsqrt sad selp shf shfl shl shr sin slct sqrt "
    "sub subc szext tanh testp vote xor mov cvta isspacep activemask elect movmatrix match mapa getctarank ldmatrix mma"
)
RULES = (
    *(Rule(f"{opcode}.*") for opcode in _WHOLE.split()),
    Rule("cvt.*", 2),
    Rule("setp.*", 5),
    Rule("set.*", 24),
    Rule("set.??.u32.*"),
    *(
        Rule(f"{opcode}.*", 6)
        for opcode in ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
    ),
    Rule("vmad.*", 12),
    *(
        Rule(f"v{name}{lanes}.*", 8)
        for name in ("add", "sub", "avrg", "absdiff", "min", "max", "set")
        for lanes in (2, 4)
    ),
    Rule("ld.*", 8, 4, (*_HINTS, ".acquire")),
    Rule("ld.global.*", 1, 3, (*_HINTS,)),
    Rule("ld.shared.*", 1, 3, (*_HINTS,)),
    Rule("ld.acquire.*", 12, 4, _HINTS),
    Rule("ldu.*", 4),
    Rule("atom.*", 2, 3, ("L2::",)),
    Rule("atom.shared.*", 1, 3),
    Rule("atom.global.*", 1, 4, ("L2::",)),
    Rule("wmma.mma.*", 12),
    Rule("wgmma.*", 200),
    Rule("tex.*", 60),
    Rule("st.*", 3000),
    Rule("red.*", 1200),
    Rule("bar.*", 3),
    Rule("mbarrier.*", 40),
)
"""The last ones have no chain of registers; they stand here for their reason in the table."""


def spellings(target: str, rules: tuple[Rule, ...] = RULES) -> Iterator[str]:
    """The selected spellings that a target has, each once, in the order of the rules."""
    seen: set[str] = set()
    for rule in rules:
        found = [
            each
            for each in sorted(pt.forms(rule.pattern, target))
            if each.count(".") <= rule.most and not any(word in each for word in rule.without)
        ]
        for each in found[rule.every // 2 :: rule.every]:
            if each not in seen:
                seen.add(each)
                yield each


def mixed(found: list[str], ways: int = 8) -> list[str]:
    """The same spellings, families mixed, so that a run that is stopped early has seen some of each."""
    return [each for start in range(ways) for each in found[start::ways]]


if __name__ == "__main__":
    chosen = mixed(list(spellings(sys.argv[1] if sys.argv[1:] else "sm_90a")))
    sys.stdout.writelines(f"{each}\n" for each in chosen)
