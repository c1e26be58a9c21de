"""The whole spelling table against NVIDIA's assembler: a seeded sample, or all of it with PTXTILE_SWEEP=full."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxtile.isa.line import Clause, Line
from tests.oracle import divergences, sweep
from tests.oracle.assembler import Assembler, find

FULL = os.environ.get("PTXTILE_SWEEP") == "full"
FILLINGS = 4_000 if FULL else 10
"""Fillings of a syntax line, at most; beyond, a sample of so many."""
TARGETS = None if FULL else 2
"""Targets asked of each kind about an operand list; None: all."""
LOOKED_AT = 4_000 if FULL else 400
"""Fillings of a line among which a witness for a clause is sought."""
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "sweep.json"


@pytest.fixture(scope="module")
def assembler() -> Assembler:
    path = find()
    if path is None:
        pytest.skip("no ptxas: set PTXTILE_PTXAS or install nvidia-cuda-nvcc")
    return Assembler(path)


@pytest.fixture(scope="module")
def report(assembler: Assembler) -> Iterator[dict[str, object]]:
    """What the sweeps counted; written to benchmarks/results/sweep.json when all of the table was swept."""
    found: dict[str, object] = {
        "ptxas": assembler.release,
        "ptx": sweep.NEWEST,
        "fillings_of_a_line_at_most": FILLINGS,
    }
    yield found
    if FULL and not sweep.ONLY:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def test_the_table_says_what_the_assembler_does(assembler: Assembler, report: dict[str, object]) -> None:
    """Sound, tight, floors, order, for every syntax line."""
    known = divergences.listed()
    asked: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    unknown: list[str] = []
    for batch in _batches(random.Random(20)):
        asked.update(question.sweep for question in batch)
        for question, message in sweep.ask(assembler, batch):
            differing[question.sweep] += 1
            if not any(each.covers(question.sweep, question.text) for each in known):
                wanted = "should be taken" if question.wanted else "should be refused"
                unknown.append(
                    f"{question.sweep}: {question.source}: {question.text} for {question.target}, PTX "
                    f"{question.version} {wanted}: {message or 'it is taken'}"
                )
    report["asked"], report["differing"] = dict(asked), dict(differing)
    assert not unknown, f"{len(unknown)} differences that divergences.txt does not list:\n" + "\n".join(
        unknown[:40]
    )


def _batches(chance: random.Random) -> Iterator[list[sweep.Question]]:
    batch: list[sweep.Question] = []
    for line in sweep.lines():
        for values in sweep.fillings(line, FILLINGS, chance):
            for case in sweep.cases(line, values):
                batch.extend(sweep.questions(case, chance, TARGETS))
            batch.extend(sweep.reordered(line, values, chance))
        if len(batch) > 1_000_000:
            yield batch
            batch = []
    yield batch


def test_one_spelling_and_one_operand_list_fit_one_signature(report: dict[str, object]) -> None:
    chance = random.Random(21)
    twice: dict[str, tuple[str, ...]] = {}
    cases = 0
    for line in sweep.lines():
        for values in sweep.fillings(line, FILLINGS, chance):
            for case in sweep.cases(line, values):
                cases += 1
                if case.twice:
                    twice[case.text] = case.twice
    report["operand lists"] = cases
    assert not twice


def test_every_clause_matters(assembler: Assembler, report: dict[str, object]) -> None:
    """Without the clause the table would allow what the assembler refuses, or would say one thing twice."""
    chance = random.Random(22)
    where: dict[tuple[str, str], list[tuple[Clause, Line]]] = {}
    for clause, line in sweep.clauses():
        where.setdefault((clause.source, clause.text), []).append((clause, line))
    seen: dict[tuple[str, str], list[sweep.Witness]] = {}
    for key, uses in where.items():
        found: list[sweep.Witness] = []
        for clause, line in uses:
            for witness in sweep.witnesses(clause, line, LOOKED_AT, chance):
                found.append(witness)
                if len(found) % 8 == 0:
                    break
            if len(found) >= 32:
                break
        if found:
            seen[key] = found
    needed = _refused(assembler, seen)
    idle = [f"{source}: {text}" for source, text in seen if (source, text) not in needed]
    report["clauses"] = {"all": len(where), "seen by this assembler": len(seen), "needed": len(needed)}
    known = [each.pattern for each in divergences.listed() if each.sweep == "needed"]
    assert [each for each in idle if each.partition(": ")[2] not in known] == []


def _refused(assembler: Assembler, seen: dict[tuple[str, str], list[sweep.Witness]]) -> set[tuple[str, str]]:
    """The clauses of which the assembler refuses a witness."""
    groups: dict[tuple[str, str], list[tuple[tuple[str, str], str]]] = {}
    for key, found in seen.items():
        for witness in found:
            groups.setdefault((witness.target, witness.version), []).append((key, witness.text))
    needed: set[tuple[str, str]] = set()
    for (target, version), entries in groups.items():
        for number in assembler.refusals([text for _, text in entries], target, version):
            needed.add(entries[number][0])
    for key, found in seen.items():
        if key not in needed and any(not assembler.assembles(w.text, w.target, w.version) for w in found[:4]):
            needed.add(key)
    return needed
