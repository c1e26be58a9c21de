"""Makes docs/isa from the spelling table: `python docs/build.py` writes it, `--check` says what would change.

A page for each chapter of `grammar/instructions/`, an index in Markdown, and `index.html`, one page without a server or
other files on which a reader can search every syntax line. Nothing in them is written by hand, and no line numbers
stand in them, so that they change only when the table says something else. A test holds them to the table.
"""

from __future__ import annotations

import html
import itertools
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "isa"
MOST_SPELLINGS = 500
"""Of one line: so many are looked at to say which targets have some of it."""
sys.path.insert(0, str(ROOT))

from ptxtile.cli.words import floors_text, operand_rows  # noqa: E402 - the checkout's own package
from ptxtile.isa import cache, condition, listing, rules, table, targets  # noqa: E402
from ptxtile.isa.form import Form, Signature  # noqa: E402
from ptxtile.isa.line import Clause, Line, lines_of  # noqa: E402


class Entry(NamedTuple):
    """One syntax line, with a spelling of it that some target has (None if none has any)."""

    line: Line
    form: Form | None


class Instruction(NamedTuple):
    """One block of a chapter."""

    name: str
    summary: str
    section: str
    entries: tuple[Entry, ...]


class Chapter(NamedTuple):
    """One `.isa` file; `title` is its first comment."""

    name: str
    title: str
    instructions: tuple[Instruction, ...]


def chapters() -> list[Chapter]:
    """The whole table, in the order of its files."""
    found: list[Chapter] = []
    for path in sorted((ROOT / "grammar" / "instructions").glob("*.isa")):
        comment = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("//").strip()
        blocks = tuple(_instruction(record, path.name) for record in cache.load(path, "chapter"))
        found.append(Chapter(path.stem, comment, blocks))
    return found


def _instruction(record: list, filename: str) -> Instruction:
    lines = lines_of(record, filename)
    return Instruction(record[0], record[1], record[2], tuple(Entry(line, _example(line)) for line in lines))


def _example(line: Line) -> Form | None:
    for values, spelling in listing.spellings(line):
        if any(each.now for each in rules.available(line, values)):
            return table.find(spelling)
    return None


def _slots(line: Line) -> Iterator[tuple[str, tuple[str, ...]]]:
    for piece in dict.fromkeys(piece for piece in line.pieces if piece.slot):
        yield piece.name, piece.values


def _targets(line: Line) -> str:
    """Where some spelling of the line is; if they are many, by the clauses that hold for each."""
    seen = list(itertools.islice(listing.spellings(line), MOST_SPELLINGS + 1))
    if len(seen) <= MOST_SPELLINGS:
        each = [found.floors for values, _ in seen for found in rules.available(line, values)]
        return floors_text(targets.as_mapping(tuple(map(min, *each, each[0])))) if each else "no target"
    plain = [clause for clause in line.clauses if clause.kind != "where" and clause.condition is None]
    floors, _ = rules.combine(plain)
    own = [max(low, base) if low < targets.NEVER else low for low, base in zip(floors, targets.facts().base)]
    return floors_text(targets.as_mapping(tuple(own)))


def _conditions(line: Line) -> list[str]:
    """The clauses that hold for some spellings of the line and not for others, in the table's words."""
    told: dict[str, None] = {}
    for clause in line.clauses:
        if clause.text.endswith(" in the set " + clause.text.rpartition(" ")[2]):
            told[f"{clause.text.split()[0]} needs {targets.describe(clause.alternatives)}"] = None
        elif clause.kind == "removed" or (clause.condition is not None and _asks(clause, line)):
            told[re.sub(r"\s+", " ", clause.text)] = None
    return list(told)


def _asks(clause: Clause, line: Line) -> bool:
    """Whether a condition can differ between spellings or operand lists of the line."""
    named = set(condition.modifiers_in(clause.condition))
    here = {
        word
        for piece in line.pieces
        if piece.slot or piece.kind != "required"
        for word in (piece.name, *piece.values)
    }
    return bool(named & here) or condition.mentions_operand(clause.condition)


def _signature(entry: Entry) -> Signature | None:
    """The longest operand list of the example that this line gives."""
    own = [s for s in entry.form.signatures if s.source == entry.line.source] if entry.form else []
    return max(own, key=lambda s: len(s.operands), default=None)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _entry(entry: Entry) -> Iterator[str]:
    line = entry.line
    yield from ("```", line.text, "```", "")
    yield f"* {_targets(line)}"
    for name, values in _slots(line):
        yield f"* `{name}`: {' '.join(f'`{value}`' for value in values)}"
    yield from (f"* `{text}`" for text in _conditions(line))
    signature = _signature(entry)
    if entry.form is not None and signature is not None:
        yield f"* for example `{entry.form.spelling}`" + (
            ", whose operands are" if signature.operands else ""
        )
        if signature.operands:
            yield from ("", "  | operand | | type | may be |", "  |---|---|---|---|")
            for name, role, kind, may in operand_rows(signature):
                yield f"  | `{_cell(name)}` | {role} | {kind and f'`{kind}`'} | {_cell(may)} |"
    yield ""


def page(chapter: Chapter) -> str:
    """The Markdown of one chapter."""
    lines = [
        f"# {chapter.title.rstrip('.')}",
        "",
        f"<!-- Made by docs/build.py from grammar/instructions/{chapter.name}.isa. Do not edit. -->",
        "",
        "Every syntax line, with the targets that have it, the values of its slots, and the conditions that the table",
        "puts on it (`grammar/notation.md` says how to read them). `ptxtile explain SPELLING` tells of one spelling.",
        "[All instructions](index.md).",
        "",
    ]
    for block in chapter.instructions:
        lines += [f"## {block.name}", "", f"{block.summary}. Section {block.section} of the PTX manual.", ""]
        for entry in block.entries:
            lines += _entry(entry)
    return "\n".join(lines).rstrip() + "\n"


def _anchors(chapter: Chapter) -> list[tuple[Instruction, str]]:
    """Each block with the anchor that Markdown gives its heading: dots and colons go, the second of a name gets -1."""
    seen: dict[str, int] = {}
    found: list[tuple[Instruction, str]] = []
    for block in chapter.instructions:
        plain = re.sub(r"[^\w-]", "", block.name.lower())
        number = seen.get(plain, 0)
        seen[plain] = number + 1
        found.append((block, f"{plain}-{number}" if number else plain))
    return found


def index(all_of_it: list[Chapter]) -> str:
    """The Markdown index: chapters, then every instruction by name."""
    lines = [
        "# The instructions",
        "",
        "<!-- Made by docs/build.py from grammar/instructions. Do not edit. -->",
        "",
        "Made from the spelling table. `index.html` in this folder, opened in a browser, searches every syntax line.",
        "",
        "| chapter | | syntax lines |",
        "|---|---|---|",
    ]
    for chapter in all_of_it:
        count = sum(len(block.entries) for block in chapter.instructions)
        lines.append(f"| [{chapter.name}]({chapter.name}.md) | {chapter.title.rstrip('.')} | {count} |")
    lines += ["", "| instruction | | section |", "|---|---|---|"]
    rows = [(block, f"{c.name}.md#{at}") for c in all_of_it for block, at in _anchors(c)]
    for block, link in sorted(rows, key=lambda row: (row[0].name, row[1])):
        lines.append(f"| [{block.name}]({link}) | {_cell(block.summary)} | {block.section} |")
    return "\n".join(lines) + "\n"


def search_page(all_of_it: list[Chapter]) -> str:
    """One HTML page that finds syntax lines by words: of the line, its slots' values, its summary, its targets."""
    rows = [
        {
            "line": entry.line.text,
            "slots": [f"{name}: {' '.join(values)}" for name, values in _slots(entry.line)],
            "targets": _targets(entry.line),
            "conditions": _conditions(entry.line),
            "example": entry.form.spelling if entry.form else "",
            "summary": block.summary,
            "section": block.section,
            "chapter": chapter.name,
        }
        for chapter in all_of_it
        for block in chapter.instructions
        for entry in block.entries
    ]
    data = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    template = (ROOT / "docs" / "search.html").read_text(encoding="utf-8")
    newest = html.escape(targets.facts().versions[-1])
    return template.replace("@VERSION@", newest).replace("@ROWS@", data.replace("</", "<\\/"))


def pages() -> dict[str, str]:
    """Every file of docs/isa with its text."""
    all_of_it = chapters()
    made = {f"{chapter.name}.md": page(chapter) for chapter in all_of_it}
    return {**made, "index.md": index(all_of_it), "index.html": search_page(all_of_it)}


def stale() -> list[str]:
    """The files of docs/isa that are missing, too many, or say something else than the table."""
    made = pages()
    there = {path.name for path in FOLDER.glob("*")}
    changed = {
        name for name in made if name in there and (FOLDER / name).read_text(encoding="utf-8") != made[name]
    }
    return sorted(changed | (set(made) ^ there))


def main() -> int:
    """Write the pages, or with --check only compare them."""
    if sys.argv[1:] == ["--check"]:
        found = stale()
        sys.stdout.write("".join(f"docs/isa/{name} is not what the table says\n" for name in found))
        return 1 if found else 0
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for path in FOLDER.glob("*"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    sys.stdout.write(f"docs/isa: {len(made)} files\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
