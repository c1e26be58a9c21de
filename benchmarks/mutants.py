"""Spellings and operand lists made wrong on purpose, from the whole table: the table's verdict beside the assembler's.

    python benchmarks/mutants.py [--seed N] [--fillings N] [--opcode REGEX]

Of every syntax line some fillings are taken at random, and one thing is changed in each copy: in the operands another
register class, a literal for a register or a register for a literal, an operand more or fewer, a shorter vector; in the
spelling the order, one modifier less, more, twice, or another. `check_text` judges each operand list, `is_valid` each
spelling, and ptxas both, for ten targets. What differs is put into kinds: see `tests/oracle/divergences.txt`.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

import harness

sys.path.insert(0, str(harness.ROOT))
from ptxtile import check_text, isa
from ptxtile.isa import table
from tests.oracle import sweep
from tests.oracle.assembler import BANKS, Assembler, find, head, independent
from tests.oracle.operands import write

TARGETS = tuple("sm_75 sm_80 sm_89 sm_90 sm_90a sm_100 sm_100a sm_103a sm_120 sm_120a".split())
PREFERRED = ("sm_90a", "sm_100a", "sm_120a", "sm_103a", "sm_107a", "sm_75")
MOST = 24
"""Operand mutants of one operand list."""
CHUNK = 1500
"""Lines of a module: `check_text` gives up after ten thousand faults."""
REGISTER = re.compile(r"\b[pchrdqfe]\d+\b")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?![\w.])")

Mutant = tuple[str, str]
"""The kind of change, and the statement."""


def separate(operands: str) -> list[str]:
    """An operand list at its outer commas."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(operands):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and not depth:
            found.append(operands[start:place].strip())
            start = place + 1
    return [*found, operands[start:].strip()] if operands.strip() else []


def operand_mutants(statement: str, chance: random.Random) -> Iterator[Mutant]:
    spelling, _, operands = statement[:-1].partition(" ")
    parts = separate(operands)

    def whole(each: list[str]) -> str:
        return f"{spelling} {', '.join(each)}".strip() + ";"

    def spliced(found: re.Match[str], text: str) -> str:
        return f"{spelling} {operands[: found.start()]}{text}{operands[found.end() :]};"

    registers = list(REGISTER.finditer(operands))
    for found in chance.sample(registers, min(4, len(registers))):
        others = [bank for bank in BANKS.values() if bank != found[0][0]]
        for bank in chance.sample(others, 3):
            yield "class", spliced(found, f"{bank}{chance.randint(20, 39)}")
        yield "literal for register", spliced(found, "3")
    for found in NUMBER.finditer(operands):
        yield "register for literal", spliced(found, "r11")
        yield (
            "another literal",
            spliced(found, str(chance.choice([0, 1, 2, 3, 4, 7, 8, 16, 31, 64, 100, 256, -1]))),
        )
    for extra in ("p35", "7", "r39", "d39"):
        yield "one more", whole([*parts, extra])
    for place in range(len(parts)):
        yield "one fewer", whole([*parts[:place], *parts[place + 1 :]])
    for found in re.finditer(r"\{([^{}]*,[^{}]*)\}", operands):
        yield "shorter vector", spliced(found, "{" + found[1].rpartition(",")[0] + "}")


def spelling_mutants(
    words: list[str], own: list[str], every: list[str], chance: random.Random
) -> Iterator[tuple[str, list[str]]]:
    count = len(words)
    if count > 1:
        yield "order", chance.sample(words, count)
        place = chance.randrange(count - 1)
        yield "order", [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
    for _ in range(2 if count else 0):
        place = chance.randrange(count)
        before, after = words[:place], words[place + 1 :]
        yield "one less", before + after
        yield "another", [*before, chance.choice(own), *after]
        yield "another", [*before, chance.choice(every), *after]
        yield "one more", [*before, chance.choice(own), *words[place:]]
        yield "one more", [*before, chance.choice(every), *words[place:]]
    if count:
        place = chance.randrange(count)
        yield "twice", [*words[: place + 1], *words[place:]]


def cases(
    pattern: str, fillings: int, chance: random.Random
) -> Iterator[tuple[sweep.Line, sweep.Filling, sweep.Case]]:
    """So many fillings of each line, each with an operand list that some target has."""
    wanted = re.compile(pattern)
    for line in sweep.lines():
        if not wanted.match(line.text):
            continue
        choices = sweep.fillings(line, 60, chance)
        chance.shuffle(choices)
        taken = 0
        for values in choices:
            # a sampler belongs to modules of another kind than these
            found = [c for c in sweep.cases(line, values) if sweep._now(c) and not independent(c.text)]
            if found and taken < fillings:
                taken += 1
                yield line, values, chance.choice(found)


def judge_operands(assembler: Assembler, asked: dict[str, dict[str, str]]) -> tuple[Counter[str], list[str]]:
    counts: Counter[str] = Counter()
    differing: list[str] = []
    for target, kinds in asked.items():
        lines = list(kinds)
        refused = assembler.refusals(lines, target, sweep.NEWEST)
        told: set[int] = set()
        before = head(target, sweep.NEWEST)
        first = before.count("\n") + 1
        for start in range(0, len(lines), CHUNK):
            text = before + "\n".join(lines[start : start + CHUNK]) + "\nthere:\nret;\n}\n"
            told.update(each.line - first + start for each in check_text(text, target=target))
        for number, line in enumerate(lines):
            counts[kinds[line]] += 1
            if (number in told) != (number in refused) and not refused.get(number, "").startswith(
                "not located"
            ):
                counts[kinds[line] + ": differing"] += 1
                verb = "refuses" if number in refused else "takes"
                differing.append(f"{kinds[line]}: the assembler {verb} {line} for {target}")
    return counts, differing


def judge_spellings(
    assembler: Assembler, mutants: dict[str, tuple[str, str, str]]
) -> tuple[Counter[str], list[str]]:
    """`mutants`: spelling → kind, opcode, operands. What the table takes is asked with its own operands."""
    counts: Counter[str] = Counter()
    differing: list[str] = []
    asked: dict[str, dict[str, tuple[str, bool]]] = defaultdict(dict)
    for spelling, (kind, _, operands) in mutants.items():
        found = table.analyse(spelling)
        counts[kind] += 1
        if found is None:
            for target in ("sm_90a", "sm_100a", "sm_120a"):
                asked[target][f"{spelling} {operands}"] = spelling, False
            continue
        for signature in table.form(found).signatures[:3]:
            text = f"{spelling} {', '.join(write(signature)[0])}".strip() + ";"
            for target in TARGETS:
                has = target in signature.targets and target not in signature.removed
                asked[target][text] = spelling, has
    wrong: dict[str, str] = {}
    for target, questions in asked.items():
        lines = [text for text in questions if not independent(text)]
        refused = assembler.refusals(lines, target, sweep.NEWEST)
        for number, text in enumerate(lines):
            spelling, wanted = questions[text]
            if wanted != (number not in refused) and not (
                wanted is False and not assembler.assembles(text, target, sweep.NEWEST)
            ):
                wrong.setdefault(spelling, f"{text} for {target}: {refused.get(number, 'taken')}")
    for spelling, text in wrong.items():
        kind, opcode, _ = mutants[spelling]
        why = reason(spelling, opcode)
        counts[f"{kind}: {why}"] += 1
        if why == "differing":
            differing.append(f"{kind}: {text}")
    return counts, differing


def reason(spelling: str, opcode: str) -> str:
    """ "duplicate" or "dropped" where the assembler seems to ignore one modifier, else "differing"."""
    words = ["." + word for word in spelling.split(".")[1:]]
    if len(set(words)) < len(words):
        return "duplicate"
    for place in range(len(words)):
        if table.analyse(opcode + "".join(words[:place] + words[place + 1 :])) is not None:
            return "dropped"
    return "differing"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fillings", type=int, default=2)
    parser.add_argument("--opcode", default="")
    options = parser.parse_args()
    path = find()
    if path is None:
        raise SystemExit("no ptxas: set PTXTILE_PTXAS or install nvidia-cuda-nvcc")
    assembler, chance = Assembler(path), random.Random(options.seed)
    vocabulary: dict[str, set[str]] = defaultdict(set)
    for line in sweep.lines():
        for piece in line.pieces:
            vocabulary[line.opcode].update(piece.values)
    every = sorted(set().union(*vocabulary.values()) | set(isa.all_types()))
    operands: dict[str, dict[str, str]] = defaultdict(dict)
    spellings: dict[str, tuple[str, str, str]] = {}
    for line, values, case in cases(options.opcode, options.fillings, chance):
        have = sweep._now(case)
        target = next((each for each in PREFERRED if each in have), have[0])
        made = list(operand_mutants(case.text, chance))
        for kind, text in [("none", case.text), *chance.sample(made, min(MOST, len(made)))]:
            operands[target].setdefault(text, kind)
        words = [value for value in values if value is not None]
        rest = case.text[len(case.spelling) :].strip()
        for kind, changed in spelling_mutants(words, sorted(vocabulary[line.opcode]), every, chance):
            if changed != words:
                spellings.setdefault(line.opcode + "".join(changed), (kind, line.opcode, rest))
    lists, wrong_lists = judge_operands(assembler, operands)
    forms, wrong_forms = judge_spellings(assembler, spellings)
    print(*wrong_lists, *wrong_forms, sep="\n")
    asked = sum(map(len, operands.values()))
    said = {
        "benchmark": "mutants",
        "command": shlex.join(["python", *sys.argv]),
        "machine": harness.machine(),
        "ptxas": assembler.release,
        "ptx": sweep.NEWEST,
        "operand lists": {
            "asked": asked,
            "agree %": round(100 * (1 - len(wrong_lists) / asked), 3),
            **dict(sorted(lists.items())),
        },
        "spellings": {"asked": len(spellings), "differing": len(wrong_forms), **dict(sorted(forms.items()))},
    }
    path = harness.RESULTS / "mutants.json"
    path.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    print("kept in", path.relative_to(harness.ROOT))


if __name__ == "__main__":
    main()
