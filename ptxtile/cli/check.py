"""`ptxtile check`: spellings and modules."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import ptxtile as pt
from ptxtile.cli import Answer, UsageFault
from ptxtile.cli.words import floors_text

__all__ = ["answer"]


def answer(what: Sequence[str], target: str | None, version: str | None) -> Answer:
    """The verdicts on all that was asked, in order; good if all are valid."""
    answers = [
        _module(each, target, version) if is_file(each) else _spelling(each, target, version) for each in what
    ]
    good = all(each.good for each in answers)
    return Answer(
        good,
        "\n".join(each.text for each in answers),
        {"valid": good, "target": target, "results": [each.data for each in answers]},
    )


def is_file(text: str) -> bool:
    """Whether an argument means a file: `-`, what has a folder or ends in .ptx, or what is there."""
    return text == "-" or "/" in text or "\\" in text or text.lower().endswith(".ptx") or Path(text).is_file()


def _spelling(spelling: str, target: str | None, version: str | None) -> Answer:
    found = pt.verdict(spelling, target, version)
    good = found.kind != "rejected"
    form = found.form
    data = {
        "kind": "spelling",
        "input": spelling,
        "valid": good,
        "verdict": found.kind,
        "canonical": form.spelling if form is not None else None,
        "ptx_version": version,
        "reasons": list(found.reasons),
        "targets": dict(form.targets) if form is not None else {},
    }
    if form is None or not good:
        return Answer(
            False,
            _refusal(spelling, target, version),
            {**data, "message": _refusal(spelling, target, version)},
        )
    where = (
        f"on {target}, from PTX ISA {form.targets[target]}" if target else f"on {floors_text(form.targets)}"
    )
    if found.kind == "canonical":
        return Answer(True, f"{spelling}: valid {where}", data)
    reasons = "".join(f"\n  {reason}" for reason in found.reasons)
    return Answer(True, f"{spelling}: tolerated {where}\n  canonical: {form.spelling}{reasons}", data)


def _refusal(spelling: str, target: str | None, version: str | None) -> str:
    """The whole message of the FormError: what is wrong, a caret, all reasons, what is near."""
    try:
        pt.validate(spelling, target, version)
    except pt.FormError as error:
        return str(error)
    raise AssertionError(f"verdict and validate differ on {spelling!r}")


def read(name: str) -> str:
    """A file's text, or standard input's; bytes that are no UTF-8 become U+FFFD, which the check then points at."""
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except IsADirectoryError:
        raise UsageFault(f"{name} is a folder, not a PTX file") from None
    except FileNotFoundError:
        raise UsageFault(f"there is no file {name}") from None
    except OSError as error:
        raise UsageFault(f"{name} cannot be read: {error.strerror or error}") from None
    return raw.decode("utf-8", errors="replace")


def _line(name: str, each: pt.Diagnostic) -> str:
    hint = "".join(f"\n  {line}" for line in each.hint.splitlines())
    return f"{name}:{each.line}:{each.column}: {each.severity}: {each.message}{hint}"


def _module(name: str, target: str | None, version: str | None) -> Answer:
    if version is not None:
        raise UsageFault("--ptx-version is for spellings; a module says its own .version")
    shown = "<stdin>" if name == "-" else name
    found = pt.check_text(read(name), target)
    good = not any(each.severity == "error" for each in found)
    lines = [_line(shown, each) for each in found]
    if good:
        where = f" on {target}" if target else ""
        lines.append(f"{shown}: valid{where}")
    else:
        errors = sum(each.severity == "error" for each in found)
        lines.append(f"{shown}: {errors} error{'' if errors == 1 else 's'}")
    diagnostics = [
        {name: getattr(each, name) for name in ("line", "column", "severity", "message", "hint")}
        for each in found
    ]
    data = {"kind": "module", "input": shown, "valid": good, "diagnostics": diagnostics}
    return Answer(good, "\n".join(lines), data)
