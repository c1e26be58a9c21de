"""Where the data files of `grammar/` are: in the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).resolve().parent


def grammar() -> Path:
    """The folder with `notation.lark`, `types.isa` and the rest.

    A wheel carries it inside the package. A checkout has it beside the package, which is recognised by
    `pyproject.toml` next to it: a stray `grammar` in some site-packages is never taken.
    """
    inside = _HERE / "grammar"
    if inside.is_dir():
        return inside
    beside = _HERE.parent / "grammar"
    if beside.is_dir() and (_HERE.parent / "pyproject.toml").is_file():
        return beside
    raise FileNotFoundError(
        f"ptxtile's grammar folder is missing: looked for {inside} and for {beside} beside a pyproject.toml; "
        "reinstall ptxtile"
    )
