"""SASS of timed kernels: what stands between the clock reads, counted.

The proof of a chain compares two kernels that differ only in the number of steps: the opcodes between their clock
reads differ by exactly that many times the opcodes of one step, or the assembler has folded, merged or hoisted
something, and there is no number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

__all__ = ["between_clocks", "beside", "functions", "kind", "lost", "needed", "per_step"]

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[T0-9]+\s+)?([A-Z][\w.]*)(.*?);")
_FUNCTION = re.compile(r"^\.text\.(\w+):")
_CLOCK = "SR_CLOCKLO"


def functions(listing: str) -> dict[str, list[tuple[str, str]]]:
    """Every function of an nvdisasm listing: its instructions as (mnemonic, operands)."""
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] | None = None
    for line in listing.splitlines():
        name = _FUNCTION.match(line)
        if name:
            current = found.setdefault(name[1], [])
            continue
        match = _INSTRUCTION.match(line)
        if match and current is not None:
            current.append((match[1], match[2].strip()))
    return found


def between_clocks(code: list[tuple[str, str]]) -> Counter[str] | None:
    """How many of each mnemonic stand between the two reads of the clock; None unless there are two."""
    reads = [place for place, (_, operands) in enumerate(code) if _CLOCK in operands]
    if len(reads) != 2:
        return None
    return Counter(mnemonic for mnemonic, _ in code[reads[0] + 1 : reads[1]])


# Instructions that the assembler picks between, to spread work over pipes or to place a value in a register.
_EQUAL = {
    "IMAD.IADD": "IADD3", "VIADD": "IADD3", "IMAD.X": "IADD3.X", "IMAD.SHL.U32": "SHF.L.U32", "IMAD.SHL": "SHF.L.U32",
}  # fmt: skip
_HALF = re.compile(r"^H(?:FMA|MUL|ADD)2(?:\.MMA)?\b")
"""Half precision has two pipes, and sums and products may be multiply-adds."""

_MOVES = frozenset(
    [
        "MOV",
        "IMAD.MOV.U32",
        "IMAD.MOV",
        "IMAD.U32",
        "UMOV",
        "CS2R",
        "R2UR",
        "UIADD3",
        "CS2R.32",
        "HFMA2.MMA.MOV",
    ]
)


def _spilled(name: str, count: int, steps: int) -> bool:
    """Whether these are the few registers that found no place: at most one in four steps."""
    return name.startswith(("LDL", "STL")) and 4 * abs(count) <= steps


def per_step(short: Counter[str] | None, long: Counter[str] | None, steps: int) -> dict[str, float] | str:
    """The mnemonics of one step, from two kernels of which the longer has `steps` more; or why there is no proof.

    Counts are whole, except that moves between registers, and equal instructions that the assembler alternates, may
    come to a fraction a step; of the latter the sum is whole.
    """
    if short is None or long is None:
        return "the clock is not read twice"
    more = {name: long[name] - short[name] for name in sorted({*short, *long} - {"NOP"})}
    more = {name: count for name, count in more.items() if count}
    sums: Counter[str] = Counter()
    for name, count in more.items():
        sums[_EQUAL.get(name, _HALF.sub("H2", name))] += count
    broken = [
        name
        for name, count in sums.items()
        if (count % steps or count < 0) and name not in _MOVES and not _spilled(name, count, steps)
    ]
    listing = ", ".join(f"{count} {name}" for name, count in more.items())
    if broken:
        return f"{steps} more steps are {listing} more instructions: merged or folded"
    if not any(count >= steps and name not in _MOVES for name, count in sums.items()):
        return f"{steps} more steps add no instruction but {listing or 'none'}: folded away"
    return {name: round(count / steps, 4) for name, count in more.items() if count > 0}


def kind(mnemonic: str) -> str:
    """The first word of a mnemonic; comparisons of all types are one kind, and so are selections."""
    word = mnemonic.partition(".")[0]
    return next(
        (each for each in ("SETP", "SEL") if word in (f"I{each}", f"F{each}", f"D{each}", each)), word
    )


def beside(proof: Mapping[str, float], links: Mapping[str, float]) -> dict[str, float]:
    """What a step has besides its links and moves: the instructions of the form itself.

    Args:
        proof: mnemonics of a step.
        links: kinds of instructions that links need ("PRMT"), and how many of each.
    """
    owed = dict(links)
    rest: dict[str, float] = {}
    for name, count in proof.items():
        word = kind(name)
        paid = min(owed.get(word, 0.0), count)
        owed[word] = owed.get(word, 0.0) - paid
        if count > paid and name not in _MOVES:
            rest[name] = count - paid
    return rest


_UNCOUNTED = (
    "LD",
    "ST",
    "BRA",
    "EXIT",
    "BSSY",
    "BSYNC",
    "CALL",
    "RET",
    "NOP",
    "PRMT",
    "WARPSYNC",
    "UL",
    "R2U",
    "S2",
)
"""What a kernel has beside the work of a form: memory, control, and halves of registers put in their place."""


def _worked(counts: Mapping[str, float]) -> Counter[str]:
    """Instructions that compute, by kind; a sum on the multiplier's pipe is a sum."""
    found: Counter[str] = Counter()
    for name, count in counts.items():
        if name in _MOVES or name.startswith(_UNCOUNTED):
            continue
        if name.startswith(("IADD", "VIADD", "IMAD.IADD", "IMAD.X", "LEA")):
            found["IADD3"] += count  # type: ignore[assignment]
        elif name.startswith("I2F"):
            found["I2F"] += count  # type: ignore[assignment]
        elif name.startswith("IMAD.SHL"):
            found["SHF"] += count  # type: ignore[assignment]
        else:
            found["H2" if _HALF.match(name) else kind(name)] += count  # type: ignore[assignment]
    return found


def needed(fewer: list[tuple[str, str]], more: list[tuple[str, str]], steps: int) -> dict[str, float]:
    """Instructions that a step needs when nothing can be shared, by kind: of two `kernel.bare`, `steps` apart."""
    short, long = (Counter(mnemonic for mnemonic, _ in code) for code in (fewer, more))
    return dict(_worked({name: (long[name] - short[name]) / steps for name in {*short, *long}}))


def lost(proof: Mapping[str, float], alone: Mapping[str, float]) -> dict[str, float]:
    """Instructions that a form alone needs and that a step of its chain has not.

    They were computed once for all steps, from operands that do not change, or two steps were merged into one.

    Args:
        proof: mnemonics of a step.
        alone: what `needed` found.
    """
    step = _worked(proof)
    spare = max(step["IMAD"] - alone.get("IMAD", 0.0), 0.0)
    step["IADD3"] += spare  # type: ignore[assignment]
    missing = {name: round(alone[name] - step[name], 2) for name in sorted(alone)}
    return {name: count for name, count in missing.items() if count > _WHOLE}


_WHOLE = 0.9
"""Of an instruction a step: less is a matter of where the assembler puts values."""
