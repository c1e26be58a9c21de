"""The questions about spellings: validate, is_valid, verdict, forms.

The module `explain` is imported where it is needed: a program whose spellings are right never does.

Without a version the newest one of the table is meant; without a target, any target that the newest assembler
still makes code for. A target must be known (TargetError), however old.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxtile.errors import FormError, TargetError
from ptxtile.isa import table, targets
from ptxtile.isa.form import Form, Verdict
from ptxtile.isa.match import Reading
from ptxtile.isa.table import Analysis

_seen: dict[tuple[str, str | None, str | None], bool] = {}
_anywhere: dict[str, bool] = {}
_forms: dict[str, Form] = {}


def is_valid(spelling: str, target: str | None = None, ptx_version: str | None = None) -> bool:
    """Whether the assembler takes the spelling, in any order of modifiers it takes.

    >>> is_valid("fma.rn.f32"), is_valid("fma.f32"), is_valid("add.rn.f32x2", "sm_90")
    (True, False, False)
    """
    try:
        if target is None is ptx_version:
            return _anywhere[spelling]
        return _seen[spelling, target, ptx_version]
    except (KeyError, TypeError):
        pass
    place, version = _resolve(spelling, target, ptx_version)
    answer = _has(table.readings(spelling), place, version)
    if len(_seen) >= table.LIMIT or len(_anywhere) >= table.LIMIT:
        _seen.clear()
        _anywhere.clear()
    if target is None is ptx_version:
        _anywhere[spelling] = answer
    else:
        _seen[spelling, target, ptx_version] = answer
    return answer


def _resolve(spelling: str, target: str | None, ptx_version: str | None) -> tuple[int | None, int]:
    """The place of the target and of the version, after a look at whether the three are text at all."""
    if ptx_version is None and isinstance(spelling, str):
        if target is None:
            return None, targets.newest()
        known = targets.facts().index.get(target) if isinstance(target, str) else None
        if known is not None:
            return known, targets.newest()
    if not isinstance(spelling, str):
        raise FormError(f"a spelling is text such as 'fma.rn.f32', not {spelling!r}")
    for what, given, example in (("target", target, "sm_90a"), ("PTX version", ptx_version, "8.6")):
        if given is not None and not isinstance(given, str):
            raise TargetError(f"a {what} is text such as {example!r}, not {given!r}")
    place = None if target is None else targets.facts().index[targets.target(target).name]
    return place, targets.newest() if ptx_version is None else targets.version(ptx_version)


def has(analysis: Analysis, place: int | None, version: int) -> bool:
    """Whether some signature exists on the target at that place (None: on some supported one) in that
    version.
    """
    return _has(analysis.readings, place, version)


def _has(readings: Sequence[Reading], place: int | None, version: int) -> bool:
    newest = version == targets.newest()
    for reading in readings:
        for each in reading.available:
            if place is not None:
                if each.floors[place] <= version < each.removed[place]:
                    return True
            elif newest:
                if each.now:
                    return True
            elif any(each.floors[i] <= version < each.removed[i] for i in targets.supported()):
                return True
    return False


def validate(spelling: str, target: str | None = None, ptx_version: str | None = None) -> Form:
    """The Form of a spelling, which may have its modifiers in any order that the assembler takes.

    Raises FormError, with every reason in its text and in `.reasons`, if there is no such form or not on that
    target or in that version; TargetError for an unknown target or version.
    """
    place, version = _resolve(spelling, target, ptx_version)
    found = table.analyse(spelling)
    if found is None:
        from ptxtile.isa import explain

        fault = explain.no_form(spelling)
        raise FormError(fault.message, spelling=spelling, reasons=fault.reasons)
    if not has(found, place, version):
        from ptxtile.isa import explain

        fault = explain.not_available(spelling, found, target, place, version)
        raise FormError(fault.message, spelling=spelling, reasons=fault.reasons)
    return table.form(found)


def find(spelling: str) -> Form:
    """The Form of a spelling that some supported target has: `validate` without questions, remembered.

    Raises FormError as `validate` does.
    """
    form = _forms.get(spelling)
    if form is None:
        form = _forms[spelling] = validate(spelling)
    return form


def verdict(spelling: str, target: str | None = None, ptx_version: str | None = None) -> Verdict:
    """What the table says of a spelling, without raising (but TargetError for an unknown target or version)."""
    from ptxtile.isa import explain

    place, version = _resolve(spelling, target, ptx_version)
    found = table.analyse(spelling)
    if found is None:
        return Verdict("rejected", None, explain.no_form(spelling).reasons)
    form = table.form(found)
    if not has(found, place, version):
        return Verdict(
            "rejected", form, explain.not_available(spelling, found, target, place, version).reasons
        )
    if found.canonical:
        return Verdict("canonical", form, ())
    return Verdict("tolerated", form, explain.tolerated(spelling, found))
