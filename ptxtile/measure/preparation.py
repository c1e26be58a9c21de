"""Kernels of many spellings: generated, assembled, proven by their SASS, kept for the GPU.

Needs nvJitLink and nvdisasm and no GPU. A spelling's ways are tried on small kernels, many spellings in one module;
the way that proves itself is written at full size, and proven again in the cubin that will be timed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ptxtile.measure import memory, sass
from ptxtile.measure.assembling import Code, Part, assemble, assembler, module_of, version_of
from ptxtile.measure.chain import Way, candidates, find, refusal
from ptxtile.measure.kernel import Shape, bare, entry, link_of, step_text
from ptxtile.measure.links import DECLARED, words
from ptxtile.measure.plan import Batch, Case, Rate, store
from ptxtile.measure.scenarios import find as scenario, is_scenario
from ptxtile.measure.staging import part_of, stage
from ptxtile.measure.work import operations, performed

if TYPE_CHECKING:
    from ptxtile.isa import Form

__all__ = ["LINKS", "prepare_batch", "source"]

LINKS = tuple(f"link.opaque.{carrier}" for carrier in ("b16", "b32", "f32", "b64", "f64"))
_WAYS = 8
_PROBE = (8, 24)
_BARE = (2, 6)
_CHASED = 32
"""Turns of a chase's loop: enough to meet lines of the second-level cache at all distances."""

_LIMIT = 400
"""SASS instructions a step at most."""


@dataclass(frozen=True, slots=True)
class _Try:
    spelling: str
    form: Form | None
    way: Way
    alone: Mapping[str, float] = field(default_factory=dict)
    """Kinds of instructions that the form needs where nothing is shared; empty if that is not looked at."""


def _entries(each: _Try, name: str, shapes: Sequence[Shape]) -> str:
    return "".join(
        entry(f"{name}_{number}", each.form, each.way, shape, each.spelling)
        for number, shape in enumerate(shapes)
    )


def _part(each: _Try, name: str, shapes: Sequence[Shape], target: str) -> Part:
    floor = each.form.signatures[each.way.signature].targets.get(target) if each.form else None
    return Part(each.spelling, _entries(each, name, shapes), version_of([floor] if floor else []))


def _prove(code: Code, name: str, steps: int, first: int = 0) -> dict[str, float] | str:
    short, long = (sass.between_clocks(code.get(f"{name}_{first + number}", [])) for number in (0, 1))
    return sass.per_step(short, long, steps)


def _own(each: _Try, proof: dict[str, float]) -> dict[str, float] | str:
    """The proof, if the form itself is in it beside its links; or why it is not."""
    if each.form is None:
        return proof
    rest = sass.beside(proof, words(link_of(each.form, each.way)))
    listing = ", ".join(f"{count:g} {name}" for name, count in proof.items())
    if not rest:
        return f"a step is {listing}, which is the link alone: folded away"
    if each.way.kind == "chase" and not any(name.startswith("LD") for name in rest):
        return f"a step is {listing}, and no load: folded away"
    routine = any(name.startswith("CALL") for name in rest)  # whose own instructions are not counted
    if not routine and performed(rest) < operations(each.spelling):
        return f"a step is {listing}, which is not all of its products: folded away"
    return proof


def _checked(each: _Try) -> bool:
    """Whether what a step lost is looked for: a matrix form's products are counted, a load is one."""
    return each.form is not None and each.way.kind != "chase" and not operations(each.spelling)


def _bare(each: _Try, name: str, target: str) -> Part:
    assert each.form is not None
    part = _part(each, name, (), target)
    return replace(part, text="".join(bare(f"{name}_{n}", each.form, each.way, n) for n in _BARE))


def _with_need(good: Sequence[_Try], target: str) -> dict[str, _Try]:
    """These tries, each with what its form needs alone."""
    names = {each.spelling: f"b{number}" for number, each in enumerate(good) if _checked(each)}
    code, _, _ = assemble(
        [_bare(each, names[each.spelling], target) for each in good if _checked(each)], target
    )
    found = {each.spelling: each for each in good}
    for spelling, name in names.items():
        each = found[spelling]
        assert each.form is not None
        fewer, more = (code.get(f"{name}_{n}", []) for n in _BARE)
        alone = sass.needed(fewer, more, _BARE[1] - _BARE[0])
        operands = each.form.signatures[each.way.signature].operands
        if any(one.carrier == "pred" for one in operands):  # filled by SETP and VOTE, stored by SEL
            filled = sum(one.carrier == "pred" and one.role == "in" for one in operands)
            alone = {kind: count - filled * (kind in ("SETP", "VOTE")) for kind, count in alone.items()}
            alone = {kind: count for kind, count in alone.items() if kind not in ("SEL", "PLOP3")}
        found[spelling] = replace(each, alone=alone)
    return found


def _lost(each: _Try, proof: Mapping[str, float]) -> str:
    """What a step has less than the form alone; "" if nothing."""
    gone = sass.lost(proof, each.alone)
    listing = ", ".join(f"{count:g} {name}" for name, count in gone.items())
    return f"steps share {listing} that the form alone needs: operands do not change" if gone else ""


def _ways(spellings: Sequence[str], target: str, skipped: dict[str, str]) -> dict[str, Iterator[_Try]]:
    """The ways to chain each spelling; `skipped` learns why where there is none."""
    waiting: dict[str, Iterator[_Try]] = {}
    for spelling in spellings:
        if spelling in LINKS:
            waiting[spelling] = iter([_Try(spelling, None, Way(0, 0, "link"))])
            continue
        form = find(spelling)
        ways = list(itertools.islice(candidates(form, target), _WAYS))
        if ways:
            waiting[spelling] = iter([_Try(spelling, form, way) for way in ways])
        else:
            skipped[spelling] = refusal(form, target)
    return waiting


def _proven(spellings: Sequence[str], target: str, skipped: dict[str, str]) -> dict[str, tuple[_Try, float]]:
    """For each spelling the first way whose SASS proves itself, with the SASS instructions of a step."""
    waiting = _ways(spellings, target, skipped)
    found: dict[str, tuple[_Try, float]] = {}
    second: dict[str, tuple[_Try, float, float]] = {}
    shapes = [Shape(1, unroll) for unroll in _PROBE]
    while waiting:
        tries = {
            spelling: each for spelling, ways in waiting.items() if (each := next(ways, None)) is not None
        }
        for spelling in [spelling for spelling in waiting if spelling not in tries]:
            del waiting[spelling]
        names = {spelling: f"p{number}" for number, spelling in enumerate(tries)}
        good: dict[str, tuple[_Try, dict[str, float]]] = {}
        code, _, refused = assemble([_part(tries[s], names[s], shapes, target) for s in tries], target)
        for spelling, each in tries.items():
            proof = refused.get(spelling) or _prove(code, names[spelling], _PROBE[1] - _PROBE[0])
            proof = proof if isinstance(proof, str) else _own(each, proof)
            if isinstance(proof, str):
                skipped[spelling] = proof
            else:
                good[spelling] = each, proof
        tried = _with_need([each for each, _ in good.values()], target)
        for spelling, (_, proof) in good.items():
            pair = tried[spelling], sum(proof.values())
            if _lost(tried[spelling], proof):
                gone = sum(sass.lost(proof, tried[spelling].alone).values())
                if spelling not in second or gone < second[spelling][2]:
                    second[spelling] = *pair, gone
            else:
                found[spelling] = pair
                del waiting[spelling]
    found = {
        spelling: found[spelling] if spelling in found else second[spelling][:2]
        for spelling in spellings
        if spelling in found or spelling in second
    }
    for spelling in found:
        skipped.pop(spelling, None)
    return found


def _registers(each: _Try) -> int:
    """32-bit registers of what a chain carries."""
    if each.form is None:
        return 2
    signature = each.form.signatures[each.way.signature]
    wide = {"b64": 2, "f64": 2, "b128": 4}
    return max(wide.get(o.carrier or "", 1) * o.length for o in signature.operands if o.role == "out")


def _shapes(each: _Try, weight: float) -> list[Shape]:
    """Dependent short and long, independent short and long: bodies of a few hundred instructions.

    A chase has no independent chains: all its threads read one address, which is no measure of bandwidth.
    """
    long = next((n for n in (48, 24, 12) if n * weight <= 400), 8)
    registers = _registers(each)
    chains = 8 if registers <= 2 and weight <= 8 else 4 if registers <= 4 and weight <= 32 else 2
    wide = next((n for n in (24, 12) if n * chains * weight <= 400), 8)
    return [
        Shape(1, max(long // 3, 4)),
        Shape(1, long),
        Shape(chains, max(wide // 3, 4)),
        Shape(chains, wide),
    ]


def _references(each: _Try, proof: Mapping[str, float]) -> tuple[str, ...]:
    """What a step's links add to the instruction; a link that the assembler saved adds nothing."""
    if each.form is None:
        return ()
    if ".cc" in each.form.modifiers or each.form.opcode in ("addc", "subc", "madc"):
        return (DECLARED,)
    if any("MERGE_C" in name for name in proof):
        # It merges the halves itself, and the link's permutation may stand beside the chain.
        return (DECLARED,)
    link = link_of(each.form, each.way, each.spelling)
    named = link.references if link else ()
    if each.way.kind == "chase":
        signature = each.form.signatures[each.way.signature]
        named = memory.references(signature, transposed=".trans" in each.form.modifiers)
    seen = {"lop3.b32": "LOP3.LUT"}
    return tuple(name for name in named if name == DECLARED or seen.get(name, "PRMT") in proof)


def _reaches_memory(each: _Try) -> bool:
    """Whether a form reads or writes global memory, which lies at other distances from other SMs."""
    operands = each.form.signatures[each.way.signature].operands if each.form else ()
    return any(one.kind == "address" and not memory.is_shared(one.space) for one in operands)


def _case(each: _Try, name: str, shapes: Sequence[Shape], code: Code) -> Case | str:
    rates: list[Rate | None] = []
    notes: list[str] = []
    chase = each.way.kind == "chase"
    for first, trips in ((0, _CHASED if chase else 8), (2, 16)):
        if chase and first:
            rates.append(None)
            continue
        steps = shapes[first + 1].unroll - shapes[first].unroll
        chains = shapes[first].chains
        proof = _prove(code, name, steps * chains, first)
        proof = proof if isinstance(proof, str) else _own(each, proof)
        proof = proof if isinstance(proof, str) else _lost(each, proof) or proof
        if isinstance(proof, str):
            notes.append(proof)
            rates.append(None)
        else:
            grid = 0 if first == 0 and _reaches_memory(each) else 1
            rates.append(
                Rate(f"{name}_{first}", f"{name}_{first + 1}", steps, chains, trips, proof, grid=grid)
            )
    if rates[0] is not None and rates[1] is None and not chase:
        # Neighbouring chains were merged (two scalars into a pair, say): one chain a thread, and warps enough.
        rates[1] = replace(rates[0], trips=16, grid=1)
    if rates == [None, None]:
        return notes[0]
    shown = next(rate.sass for rate in rates if rate is not None)
    return Case(
        spelling=each.spelling,
        family=each.form.signatures[each.way.signature].source.partition(".")[0] if each.form else "link",
        way=each.way.kind,
        chain=step_text(each.form, each.way, each.spelling),
        references=_references(each, shown),
        dependent=rates[0],
        independent=rates[1],
        note="; ".join(dict.fromkeys(notes)),
    )


def source(name: str, target: str) -> str:
    """The module of the kernels that are timed for a spelling or a point of a scenario.

    Raises:
        FormError: there is no such spelling.
        ValueError: it cannot be measured; the message says why.
        AssemblerError: nvJitLink or nvdisasm is missing, which must prove a spelling's chain.
    """
    if is_scenario(name):
        recipe = scenario(name)
        if recipe is None:
            raise ValueError(f"no scenario is named {name!r}")
        return module_of([part_of("k", recipe, target)], target)
    skipped: dict[str, str] = {}
    found = _proven([find(name).spelling], target, skipped)
    for each, weight in found.values():
        return module_of([_part(each, "k", _shapes(each, weight), target)], target)
    raise ValueError(f"{name} cannot be measured: {', '.join(skipped.values())}")


def prepare_batch(spellings: Sequence[str], target: str, folder: Path, name: str) -> Batch:
    """Assemble and prove one batch of spellings, or of points of scenarios, and keep it in the folder."""
    skipped: dict[str, str] = {}
    points = [each for each in spellings if is_scenario(each)]
    if points:
        cases, cubin = stage(points, target, skipped)
    else:
        cases, cubin = _chains(spellings, target, skipped)
    batch = Batch(name, target, assembler(), tuple(spellings), tuple(cases), skipped)
    store(batch, cubin, folder)
    return batch


def _chains(spellings: Sequence[str], target: str, skipped: dict[str, str]) -> tuple[list[Case], bytes]:
    """The cases of spellings and their cubin."""
    found = _proven(spellings, target, skipped)
    for spelling, (_, weight) in list(found.items()):
        if weight > _LIMIT:
            skipped[spelling] = f"a step is {weight:.0f} SASS instructions; at most {_LIMIT} are timed"
            del found[spelling]
    shapes = {spelling: _shapes(*each) for spelling, each in found.items()}
    names = {spelling: f"k{number}" for number, spelling in enumerate(found)}
    parts = [_part(found[s][0], names[s], shapes[s], target) for s in found]
    code, cubin, refused = assemble(parts, target)
    if refused:
        skipped.update(refused)
        parts = [each for each in parts if each.key not in refused]
        code, cubin, _ = assemble(parts, target)
    cases = []
    for spelling in (part.key for part in parts):
        case = _case(found[spelling][0], names[spelling], shapes[spelling], code)
        if isinstance(case, str):
            skipped[spelling] = case
        else:
            cases.append(case)
    return cases, cubin
