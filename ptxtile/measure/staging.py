"""Points of scenarios assembled and proven: the counterpart of `preparation` for spellings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import ptxtile as pt
from ptxtile.measure import sass
from ptxtile.measure.assembling import Code, Part, assemble
from ptxtile.measure.plan import Case, Rate
from ptxtile.measure.scenarios import find
from ptxtile.measure.scenarios.recipe import Recipe, text

__all__ = ["part_of", "prove", "stage"]


def stage(names: Sequence[str], target: str, skipped: dict[str, str]) -> tuple[list[Case], bytes]:
    """The cases of these points and their cubin; `skipped` gets the others, with the reason."""
    recipes: dict[str, Recipe] = {}
    for name in names:
        recipe = find(name)
        if recipe is None:
            skipped[name] = "there is no such scenario"
            continue
        floor = pt.validate(recipe.point.form).targets.get(target)
        if floor is None:
            skipped[name] = f"{target} does not have {recipe.point.form}"
        else:
            recipes[name] = recipe
    keys = {name: f"s{number}" for number, name in enumerate(recipes)}
    parts = [part_of(keys[name], recipe, target) for name, recipe in recipes.items()]
    code, cubin, refused = assemble(parts, target)
    if refused:
        skipped.update({name: refused[key] for name, key in keys.items() if key in refused})
        code, cubin, _ = assemble([part for part in parts if part.key not in refused], target)
    cases = []
    for name, recipe in recipes.items():
        if name not in skipped:
            case = _case(name, keys[name], recipe, code)
            if isinstance(case, str):
                skipped[name] = case
            else:
                cases.append(case)
    return cases, cubin


def part_of(key: str, recipe: Recipe, target: str) -> Part:
    """The two kernels of a point."""
    kernels = (text(f"{key}_{number}", recipe, steps) for number, steps in enumerate(recipe.steps))
    return Part(key, "".join(kernels), pt.validate(recipe.point.form).targets[target])


def _case(name: str, key: str, recipe: Recipe, code: Code) -> Case | str:
    short, long = (sass.between_clocks(code.get(f"{key}_{number}", [])) for number in (0, 1))
    steps = recipe.steps[1] - recipe.steps[0]
    proof = prove(short, long, steps, recipe)
    if isinstance(proof, str):
        return proof
    rate = Rate(f"{key}_0", f"{key}_1", steps, 1, recipe.trips, proof, recipe.steps[0])
    latency = recipe.point.unit == "cycles"
    return Case(
        spelling=name,
        family=name.partition(".")[0],
        way="scenario",
        chain=tuple(recipe.step(0)),
        references=(),
        dependent=rate if latency else None,
        independent=None if latency else rate,
        launch=recipe.launch,
        point=recipe.point,
    )


def prove(
    short: Counter[str] | None, long: Counter[str] | None, steps: int, recipe: Recipe
) -> Mapping[str, float] | str:
    """The mnemonics of one step, of which a recipe's `wanted` have their exact count; or why there is no proof."""
    if short is None or long is None:
        return "the clock is not read twice"
    more = {name: long[name] - short[name] for name in sorted({*short, *long}) if long[name] != short[name]}
    listing = ", ".join(f"{count} {name}" for name, count in more.items()) or "no"
    for prefix, count in recipe.wanted.items():
        found = sum(number for name, number in more.items() if name.startswith(prefix))
        if found != count * steps:
            return f"{steps} more steps are {listing} more instructions, not {count * steps} {prefix}"
    known = (*recipe.wanted, "NOP")
    strange = [
        name for name in more if not name.startswith(known) and name.partition(".")[0] not in recipe.helpers
    ]
    if strange:
        return f"{steps} more steps have {', '.join(strange)}, which do not belong to them"
    return {name: round(count / steps, 4) for name, count in more.items() if count > 0}
