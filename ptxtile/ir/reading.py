"""One reading of one text: pieces in order, names in their scopes, records out. Knows neither lark nor exceptions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Optional, Union

from ptxtile.ir import calls, directives, easy, instructions, module as m, quick, records, syntax, table
from ptxtile.ir.constant import Fault
from ptxtile.ir.instructions import Context
from ptxtile.ir.operand import Label, Symbol
from ptxtile.ir.records import Declarer
from ptxtile.ir.scope import Scope

_DEEPEST = 200
# A text with more is no module with faults in it, and each takes time to explain.
_MOST_FAULTS = 10_000
_DIRECTIVE_END = re.compile(r"[;{=\"]")
_EASY = frozenset(["plain", "label", "line"])
_ODD_BLANK = re.compile("[\x1c-\x1f]")
_LINE_END = re.compile(r"\n")
_WORD_START = re.compile(r"[A-Za-z0-9_$%.@]+|\S")


@dataclass(slots=True)
class Frame:
    """An open `{`: a function's body or a block."""

    scope: Scope
    start: int
    header: Optional[syntax.HeaderNode] = None
    statements: list[m.Statement] = field(default_factory=list)


class Reading:
    """Reads `text`. `report` is told every Fault, at its offset in the text; if it returns, reading goes on.

    `uses` are (offset, record) of every instruction, declaration and directive, in order; blanks may stand between the
    offset and what it is of.
    """

    def __init__(self, text: str, context: Context, report: Callable[[Fault], None]) -> None:
        self.text = text
        self.context = context
        self.report = report
        self.declarer = Declarer(table.is_type)
        self.scope = Scope(None, table.is_special, context.scanner)
        self.frames: list[Frame] = []
        self.items: list[m.Item] = []
        self.uses: list[tuple[int, object]] = []
        self.head: dict[str, syntax.HeadNode] = {}
        self.labels: dict[int, tuple[set[str], set[str]]] = {}
        self.functions: dict[str, m.Function] = {}
        self.bodies: set[str] = set()
        self.interfaces: dict[str, calls.Interface] = {}
        self.unknown: set[str] = set()
        self.closes: dict[int, int] = {}
        self.stopped = False
        self.met = 0
        # so many registers may be made before they are used: a text can declare many more than it has letters
        self.foreseen = len(text) // 8

    # ---- the loop

    def read(self) -> m.Module:
        """The whole text."""
        cut = False
        try:
            self.text = self.context.scanner.without_comments(self.text)
        except Fault as fault:
            cut = True
            self.report(fault)
            self.text = self.text[: fault.position]
        self._scan_labels()
        self._pieces()
        if self.frames and not self.stopped and not cut:
            self.report(Fault("this { is never closed", self.frames[-1].start))
        return self._module()

    def _pieces(self) -> None:
        """Everything, piece by piece; instructions that are easy to read, many at once."""
        text, context = self.text, self.context
        match, length = context.scanner.piece.match, len(text)
        position = 0
        # blanks that Python splits at and PTX does not have would make wrong statements right
        plain = context.quick and text.isascii() and _ODD_BLANK.search(text) is None
        while position < length and not self.stopped:
            found = match(text, position)
            if found is None:
                position = self._wrong(position)
                continue
            kind = found.lastgroup
            if kind in _EASY and plain and self.frames:
                frame = self.frames[-1]
                after = easy.run(context, text, position, frame.scope, frame.statements, self.uses)
                if after > position:
                    position = after
                    continue
            if kind == "end":
                break
            assert kind is not None
            position = self._piece(kind, found.start(kind), found.end())

    def _piece(self, kind: str, start: int, end: int) -> int:
        """Read one piece; where to go on."""
        try:
            if kind == "plain" or kind == "instruction":
                if not self.frames:
                    raise Fault("an instruction belongs in the body of a function", start)
                frame = self.frames[-1]
                instruction = instructions.read(self.context, self.text, start, end - 1, frame.scope)
                frame.statements.append(instruction)
                self.uses.append((start, instruction))
                return end
            if kind == "directive" and self._register(start, end):
                return end
            if kind == "open":
                self._open(start, None)
                return end
            if kind == "close":
                self._close(start)
                return end
            if kind == "directive":
                end = self.context.scanner.end_of_directive(self.text, start, end)
            self._other(kind, start, end)
        except Fault as fault:
            self.stopped = self.stopped or fault.endless
            self._fault(fault)
            self.met += 1
            if self.met == _MOST_FAULTS:
                self.stopped = True
                self.report(Fault(f"{self.met:,} statements are wrong: the rest is not read", end))
            if isinstance(fault, instructions.Refused):
                for other in fault.more:
                    self._fault(other)
                if fault.form is not None:
                    self.uses.append((fault.start, fault.form))
            if kind == "directive":
                self._spoilt(start, end)
                if self.text[end - 1] == "{" and not self.frames:
                    return self.closes.get(end - 1, len(self.text))
            return self._after(fault.position, start, end)
        return end

    def _fault(self, fault: Fault) -> None:
        """Tell a Fault, but an undeclared name only once, and not if a wrong declaration may be its own."""
        name = fault.message.removesuffix(" is not declared")
        name = name.removesuffix(" is no variable or function declared before")
        if name != fault.message:
            if name in self.unknown or name.rstrip("0123456789") in self.unknown:
                return
            self.unknown.add(name)
        self.report(fault)

    def _spoilt(self, start: int, end: int) -> None:
        """The names in a wrong declaration are not told again where they are used."""
        for found in self.context.scanner.names.finditer(self.text, start, end):
            self.unknown.add(found[0])

    def _wrong(self, position: int) -> int:
        """Text that begins no statement, or one that never ends."""
        found = _WORD_START.search(self.text, position)
        if found is None:
            return len(self.text)
        first, start = found[0][0], found.start()
        rest = (_DIRECTIVE_END if first == "." else _LINE_END).search(self.text, start)
        named = first in "@$%_" or (first.isascii() and first.isalpha())
        if named or (first == "." and rest is None):
            self.stopped = True
            self.report(Fault(f"the statement that begins with {_shown(found[0])} has no end", start))
            return len(self.text)
        self.report(Fault(f"{_shown(found[0])} begins no statement", start))
        return len(self.text) if rest is None else rest.end()

    def _after(self, fault: int, start: int, end: int) -> int:
        """Where to go on after a Fault at offset `fault` in the piece from start to end.

        A missing semicolon makes two lines one piece: the second is read again if the fault is its first word.
        """
        line = self.text.rfind("\n", start, fault) + 1
        if line > start and not self.text[line:fault].strip():
            return fault
        newline = self.text.find("\n", max(fault, start), end)
        return end if newline < 0 or self.text[start] == "." else newline

    # ---- labels are known in the whole of their block, before it is read

    def _scan_labels(self) -> None:
        text, scanner = self.text, self.context.scanner
        stack: list[tuple[set[str], set[str]]] = []
        opened: list[int] = []
        tables = ".callprototype" in text
        deeper = 0  # blocks that no reading comes to
        for found in scanner.marks.finditer(text):
            mark, start = found[0], found.start()
            if mark == ":":
                word = scanner.word_before(text, start) if stack else ""
                if word:
                    prototype = tables and text[start + 1 : start + 65].lstrip().startswith(".callprototype")
                    stack[-1][prototype].add(word)
            elif mark == "{" and len(stack) <= _DEEPEST:
                stack.append((set(), set()))
                self.labels[start] = stack[-1]
                opened.append(start)
            elif mark[0] == "{" != mark[-1]:  # a vector, a list, an empty block
                self.closes[start] = found.end()
            elif mark[0] == "{":
                deeper += len(mark)
            elif mark[0] == "}":
                count = len(mark) - deeper
                deeper = max(-count, 0)
                for _ in range(min(count, len(stack))):
                    stack.pop()
                    self.closes[opened.pop()] = start + 1
        if stack:  # a } is missing: who knows in which block a label was to be
            for labels, prototypes in self.labels.values():
                stack[0][0].update(labels)
                stack[0][1].update(prototypes)

    def _open(self, start: int, header: Optional[syntax.HeaderNode], scope: Optional[Scope] = None) -> None:
        if header is None and not self.frames:
            raise Fault("a block belongs in the body of a function", start)
        if len(self.frames) >= _DEEPEST:
            self.stopped = True
            raise Fault(f"blocks nested more than {_DEEPEST} deep", start)
        if scope is None:
            scope = Scope(self.frames[-1].scope, table.is_special, self.context.scanner)
        scope.labels, scope.prototypes = self.labels.get(start, (set(), set()))
        self.frames.append(Frame(scope, start, header))

    def _close(self, start: int) -> None:
        if not self.frames:
            raise Fault("this } closes nothing", start)
        frame = self.frames.pop()
        body = tuple(frame.statements)
        if frame.header is None:
            self.frames[-1].statements.append(m.Block(body))
            return
        function = self.functions.pop(frame.header.name.text)
        self.items.append(records.with_body(function, body))

    # ---- everything else

    def _register(self, start: int, end: int) -> bool:
        """Read a declaration of registers of one name whose qualifiers are known; False if it is none."""
        found = self.context.scanner.single.fullmatch(self.text, start, end)
        if found is None or not self.frames:
            return False
        before, name, count, extent = found.groups()
        known = self.context.registers.get(before)
        if known is None or extent is not None:
            return False
        type_, vector = known
        frame, number = self.frames[-1], None if count is None else int(count)
        if number is None:
            frame.scope.register(name, type_, vector, found.start(2))
        else:
            frame.scope.range(name, number, type_, vector, found.start(2))
            if vector == 1 and number <= self.foreseen:
                self.foreseen -= number
                frame.scope.operands.foresee(name, number, type_)
        record = m.RegisterDeclaration(type_, (name,), number, vector)
        frame.statements.append(record)
        self.uses.append((start, record))
        return True

    def _other(self, kind: str, start: int, end: int) -> None:
        text = self.text[start:end]
        node = quick.read(self.context, kind, text, start) if self.context.quick else None
        if node is None:
            node = instructions.parse(self.context, text, start)
        try:
            self._take(node, start, end)
        except Fault as fault:
            raise Fault(fault.message, start + fault.position, fault.hint) from None

    def _take(self, node: object, start: int, end: int) -> None:
        scope = self.frames[-1].scope if self.frames else self.scope
        if isinstance(node, syntax.HeaderNode):
            self._function(node, start, end)
        elif isinstance(node, syntax.HeadNode):
            self._head(node, start)
        elif isinstance(node, syntax.DeclarationNode):
            for record in self.declarer.declaration(node, scope):
                self._add(record, start)
        elif isinstance(node, syntax.AliasNode):
            self._alias(node)
        else:
            self._add(self._record(node, scope), start)

    def _record(self, node: object, scope: Scope) -> Union[m.Statement, m.Item]:
        if isinstance(node, syntax.LabelNode):
            return self._label(node, scope)
        if isinstance(node, syntax.LocNode):
            return records.loc(node)
        if isinstance(node, syntax.DirectiveNode):
            return directives.directive(node)
        if isinstance(node, syntax.FileNode):
            return m.Directive("file", node.values)
        if isinstance(node, syntax.SectionNode):
            return records.section(node)
        if isinstance(node, syntax.TargetsNode):
            return self._targets(node, scope)
        if isinstance(node, syntax.PrototypeNode):
            scope.mark(node.name.text, Symbol(node.name.text, "proto"), node.name.start)
            return self.declarer.prototype(node)
        raise Fault("this does not belong here")

    def _add(self, record: Union[m.Statement, m.Item], start: int) -> None:
        self.uses.append((start, record))
        if self.frames and not isinstance(record, (m.Function, m.Alias, m.Section)):
            self.frames[-1].statements.append(record)
        elif not self.frames and isinstance(record, (m.Variable, m.Directive, m.Section)):
            self.items.append(record)
        elif self.frames:
            raise Fault("this belongs outside of every function")
        else:
            raise Fault("this belongs in the body of a function")

    def _label(self, node: syntax.LabelNode, scope: Scope) -> m.LabelMark:
        if not self.frames:
            raise Fault("a label belongs in the body of a function", node.name.start)
        scope.mark(node.name.text, Label(node.name.text), node.name.start)
        return m.LabelMark(node.name.text)

    def _targets(self, node: syntax.TargetsNode, scope: Scope) -> m.Targets:
        scope.mark(node.name.text, Label(node.name.text), node.name.start)
        for word in node.labels:
            found = scope.find(word.text)
            if not isinstance(found, (Label, Symbol)):
                raise Fault(f"{word.text} is not declared", word.start)
            if isinstance(found, Label) != (node.kind == "branchtargets"):
                raise Fault(f"{word.text} is no target of .{node.kind}", word.start)
        return m.Targets(node.name.text, node.kind, tuple(word.text for word in node.labels))

    def _alias(self, node: syntax.AliasNode) -> None:
        for each in (node.name, node.aliasee):
            if each.text not in self.interfaces:
                raise Fault(f"{each.text} is not declared as a function", each.start)
        if self.interfaces[node.name.text] != self.interfaces[node.aliasee.text]:
            raise Fault(
                f"{node.name.text} and {node.aliasee.text} differ in their parameters", node.name.start
            )
        self.items.append(m.Alias(node.name.text, node.aliasee.text))

    def _function(self, node: syntax.HeaderNode, start: int, end: int) -> None:
        if self.frames:
            raise Fault("a function does not belong in the body of another", node.name.start)
        name, opens = node.name.text, self.text[end - 1] == "{"
        scope = Scope(self.scope, table.is_special, self.context.scanner)
        before = self.scope.find(name)
        if before is None:
            self.scope.declare(name, Symbol(name, "func"), node.name.start)
        elif not isinstance(before, Symbol) or before.space != "func" or (opens and name in self.bodies):
            raise Fault(f"{name} is declared twice", node.name.start)
        function = self.declarer.function(node, self.scope, scope, () if opens else None)
        if opens and function.linkage == "extern":
            raise Fault(f"{name} is .extern, so it has no body here", node.name.start)
        if self.interfaces.setdefault(name, own := calls.interface(function)) != own:
            raise Fault(f"{name} was declared with other parameters or return values", node.name.start)
        self.uses.append((start, function))
        if opens:
            self.functions[name] = function
            self.bodies.add(name)
            self._open(end - 1, node, scope)
        else:
            self.items.append(function)

    def _head(self, node: syntax.HeadNode, start: int) -> None:
        if node.name in self.head:
            raise Fault(f"a second .{node.name}", node.start)
        order = {"version": [], "target": ["version"], "address_size": ["version", "target"]}[node.name]
        if self.items or self.frames or list(self.head) != order:
            raise Fault(
                f".{node.name} belongs at the head: .version, .target, .address_size, then the rest",
                node.start,
            )
        self.head[node.name] = node._replace(start=start + node.start)

    def _module(self) -> m.Module:
        lacking = [f".{name}" for name in ("version", "target") if name not in self.head]
        if lacking and not self.stopped:
            self.report(
                Fault(f"a module begins with .version and .target; this has no {' and no '.join(lacking)}", 0)
            )
        version, target = self.head.get("version"), self.head.get("target")
        size = self.head.get("address_size")
        bits = int(size.values[0]) if size is not None else 64
        if bits not in (32, 64):
            self.report(Fault(f".address_size is 32 or 64, not {bits}", size.start if size else 0))
        names = target.values if target else ("",)
        return m.Module(version.values[0] if version else "", names[0], tuple(self.items), names[1:], bits)


def _shown(text: str) -> str:
    """A piece of the user's text for a message, not too long, printable."""
    return ascii(text if len(text) <= 40 else text[:37] + "...")
