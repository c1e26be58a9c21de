"""Instructions that are easy to read, many at once.

Easy are words, literals, plain addresses and vectors of such, under a spelling that was met with such operands before;
and labels and `.loc` lines between them. The first statement that is not ends a run, and is read by other means.
"""

from __future__ import annotations

from typing import Optional, Union

from ptxtile.errors import OperandError
from ptxtile.ir import module as m, quick, records, table
from ptxtile.ir.constant import Fault
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.instructions import Context
from ptxtile.ir.operand import Label
from ptxtile.ir.plan import Bound
from ptxtile.ir.scope import Scope
from ptxtile.ir.words import Mismatch
from ptxtile.isa.form import Shape

# So much is cut at once; no statement that is longer is easy.
_BLOCK = 4096
# Twice as fast as calling Instruction, which takes its fields by name too.
_make = tuple.__new__
Heads = dict[str, dict[tuple[Shape, ...], Bound]]
Uses = list[tuple[int, object]]


def run(
    context: Context, text: str, position: int, scope: Scope, found: list[m.Statement], uses: Uses
) -> int:
    """Read statements from `position`, the end of the piece before, while that is easy; where the rest begins.

    They are put into `found`, and into `uses` with the end of the piece before.
    """
    heads, operand, shape = context.heads, scope.operands.__getitem__, scope.operands.shapes.__getitem__
    block: list[str] = []
    try:
        while True:
            if not block:
                block = text[position : position + _BLOCK].split(";")
                block.pop()
                block.reverse()
            chunk = block.pop()
            try:
                head, tail = chunk.split(None, 1)
            except ValueError:
                head, tail = chunk.strip(), ""
            guard, known = None, heads.get(head)
            if known is None:
                if head[0] != "@":
                    marks = _marks(context, chunk, position, scope, found, uses)
                    position += marks
                    block.append(chunk[marks:])
                    continue
                guard = scope.guards[head]
                head, tail = tail.split(None, 1)
                known = heads[head]
            written = tail.split(", ") if tail and "{" not in tail else _split(tail)
            try:
                operands = tuple(map(operand, written))
            except Mismatch:
                written = _split(tail)
                operands = tuple(map(operand, written))
            form, signature, limited = known[tuple(map(shape, written))]
            if limited:
                table.check_literals(form, signature, operands)
            made = _make(Instruction, (form, operands, guard, signature, None))
            found.append(made)
            uses.append((position, made))
            position += len(chunk) + 1
    except (KeyError, IndexError, ValueError, Fault, Mismatch, OperandError):
        return position


def _split(text: str) -> list[str]:
    """What stands between the commas outside braces, brackets and parentheses."""
    found: list[str] = []
    depth = 0
    if not text:
        return found
    for part in text.split(","):
        if depth:
            found[-1] += "," + part
        else:
            found.append(part)
        depth += part.count("{") + part.count("[") + part.count("(")
        depth -= part.count("}") + part.count("]") + part.count(")")
    return [each.strip() for each in found]


def _marks(
    context: Context, chunk: str, position: int, scope: Scope, found: list[m.Statement], uses: Uses
) -> int:
    """Read the label or the `.loc` line that a chunk begins with; its length with the blanks before. Mismatch if it is
    neither.
    """
    rest = chunk.lstrip()
    record: Optional[Union[m.Loc, m.LabelMark]]
    record, length = _loc(context, rest) if rest.startswith(".loc") else _label(context, rest, scope)
    if record is None:
        raise Mismatch
    found.append(record)
    uses.append((position, record))
    return len(chunk) - len(rest) + length


_TABLES = (".branchtargets", ".calltargets", ".callprototype")


def _label(context: Context, rest: str, scope: Scope) -> tuple[Optional[m.LabelMark], int]:
    """The label that `rest` begins with, and its length."""
    written, colon, after = rest.partition(":")
    after = after.lstrip()
    name = written.rstrip()
    if not colon or after[:1] == ":" or after.startswith(_TABLES) or name in scope.declared:
        return None, 0
    if not context.scanner.word.fullmatch(name) or "." in name or name in ("_", "WARP_SZ"):
        return None, 0
    scope.declared[name] = Label(name)
    return m.LabelMark(name), len(written) + 1


_locs: dict[str, m.Loc] = {}
_MOST_LOCS = 1 << 14


def _loc(context: Context, rest: str) -> tuple[Optional[m.Loc], int]:
    """The `.loc` line that `rest` begins with, and its length."""
    line, _, after = rest.partition("\n")
    line = line.rstrip()
    record = _locs.get(line)
    if record is None:
        node = quick.loc(context, line)
        if node is None:
            return None, 0
        if len(_locs) >= _MOST_LOCS:
            _locs.clear()
        record = _locs[line] = records.loc(node)
    return (None, 0) if after.lstrip()[:1] == "," else (record, len(line))
