"""What is wrong with a PTX text, all of it at once, without raising."""

from __future__ import annotations

import re
from typing import Optional, Union

from ptxtile import isa
from ptxtile.errors import Diagnostic, FormError
from ptxtile.ir import calls, module as m, samplers
from ptxtile.ir.collector import collector_paused
from ptxtile.ir.constant import Fault
from ptxtile.ir.demand import MOST_BYTES, Demand, instruction_demands, item_demands, parameter_bytes
from ptxtile.ir.inference import needs
from ptxtile.ir.instruction import Instruction
from ptxtile.ir.operand import Address, Special, Symbol
from ptxtile.ir.reader import Lines, context, require_text
from ptxtile.ir.reading import Reading
from ptxtile.isa.form import Form, Signature

_SPACE = r"(?:[ \t\r\n\f\v]|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
_BEFORE = re.compile(rf"{_SPACE}(?:@{_SPACE}!?{_SPACE}[A-Za-z0-9_$%]+{_SPACE})?", re.ASCII)
# An address may be formed of a symbol of these spaces under this modifier of the instruction.
_SHARED, _PARAM = frozenset(["shared"]), frozenset(["param"])
_SPACES = {
    "": frozenset(["global", "shared", "local"]),
    ".shared": _SHARED,
    ".shared::cta": _SHARED,
    ".shared::cluster": _SHARED,
    ".global": frozenset(["global"]),
    ".local": frozenset(["local"]),
    ".const": frozenset(["const"]),
    ".param": _PARAM,
    ".param::entry": _PARAM,
    ".param::func": _PARAM,
}
_TOGETHER = samplers.READS | {"call"}
_STATE_SPACES = frozenset(["global", "shared", "const", "local", "param"])


def check_text(text: str, target: Optional[str] = None) -> list[Diagnostic]:
    """Everything that is wrong with a PTX module, one Diagnostic a cause, at its first use, in order of place.

    Form, operands and their number, register types and widths, immediates, state spaces, targets, versions, undeclared
    and twice declared names. A right module gives []. `target` stands in for the module's own; an unknown one is a
    TargetError. No text raises; what is no text is a TypeError.
    """
    require_text(text, "check_text")
    if target is not None:
        isa.find_target(target)
    return _Check(text, target).run()


class _Check:
    def __init__(self, text: str, target: Optional[str]) -> None:
        self.text = text
        self.target = target
        self.faults: list[Fault] = []
        self.spellings: set[str] = set()
        self.old: Optional[tuple[str, int]] = None
        self.inside: dict[int, tuple[bool, tuple[int, ...]]] = {}
        self.plain: set[int] = set()  # signatures that were seen, and of whose operands nothing is asked

    def run(self) -> list[Diagnostic]:
        with collector_paused():
            return self._run()

    def _run(self) -> list[Diagnostic]:
        reading = Reading(self.text, context(), self._tell)
        module = reading.read()
        place = self._availability(reading, module)
        if place is not None:
            self._uses(reading, *place)
        self._together(reading, module)
        if not self.faults:
            return []
        lines = Lines(self.text)
        found: list[Diagnostic] = []
        for fault in sorted(self.faults, key=lambda each: each.position):
            line, column = lines.place(fault.position)
            message, _, hint = fault.message.partition("\n")
            found.append(Diagnostic(line, column, "error", message, fault.hint or hint))
        return found

    def _tell(self, fault: Fault) -> None:
        """Keep a Fault, but a wrong spelling only once."""
        cause = fault.__cause__
        if isinstance(cause, FormError):
            if cause.spelling in self.spellings:
                return
            self.spellings.add(cause.spelling)
        # Where they were raised is of no use here, and would hold this object, and with it all that was read.
        fault.__traceback__ = fault.__context__ = None
        if cause is not None:
            cause.__traceback__ = cause.__context__ = None
        self.faults.append(fault)

    def _availability(self, reading: Reading, module: m.Module) -> Optional[tuple[str, int]]:
        """Target and version to hold everything against; None if the text does not say."""
        facts = isa.target_facts()
        target, version = self.target or module.target, module.version
        known = facts.targets.get(target)
        head = {name: node.start for name, node in reading.head.items()}
        if not version or not target:
            return None
        if known is None:
            self.faults.append(Fault(f"there is no target {target!a}", head["target"]))
            return None
        if module.address_size == 32 and known.supported:
            message = ".address_size 32: the assembler no longer makes code with 32-bit addresses"
            self.faults.append(Fault(message, head["address_size"], "write .address_size 64"))
        if version not in facts.ordinal:
            newest = facts.versions[-1]
            self.faults.append(
                Fault(f"there is no PTX ISA version {version}; the newest is {newest}", head["version"])
            )
            return None
        own = known if self.target is None else facts.targets.get(module.target, known)
        if not own.supported:
            self.old = own.name, facts.ordinal[version]
        floor = facts.ordinal[known.since]
        if facts.ordinal[version] < facts.ordinal[own.since]:
            fault = Fault(
                f"{own.name} needs PTX ISA {own.since}; the module's .version is {version}", head["version"]
            )
            self.faults.append(fault)
        return target, max(facts.ordinal[version], floor)

    def _uses(self, reading: Reading, target: str, version: int) -> None:
        seen: set[object] = set()
        plain = self.plain
        for position, record in reading.uses:
            if type(record) is Instruction:
                if id(record.signature) not in plain:
                    self._instruction(record, position, target, version, seen)
            elif isinstance(record, (m.Function, m.Variable, m.RegisterDeclaration, m.Loc)):
                self._record(record, position, target, version, seen)
            elif isinstance(record, Form):
                self._form(record, position, target, version, seen)

    def _together(self, reading: Reading, module: m.Module) -> None:
        """What depends on more of the module than its target: what is called, the texturing mode."""
        independent = samplers.INDEPENDENT in module.modes
        places: dict[int, int] = {}
        for position, record in reading.uses:
            if type(record) is Instruction and record.form.opcode not in _TOGETHER:
                continue
            if isinstance(record, Instruction) and record.form.opcode == "call":
                places[id(record)] = position
                continue
            found = samplers.misplaced(record, independent)
            if found is not None:
                self.faults.append(Fault(found[0], self._spelled(position), found[1]))
        for call, message in calls.mismatches(module) if places else ():
            self.faults.append(Fault(message, self._spelled(places[id(call)])))

    def _instruction(
        self, record: Instruction, position: int, target: str, version: int, seen: set[object]
    ) -> None:
        signature = record.signature
        if signature is not None and id(signature) in seen:
            inside = self.inside.get(id(signature))
            if inside is None:
                inside = self.inside[id(signature)] = _inside(signature)
            special, addresses = inside
            if not special and not addresses:
                self.plain.add(id(signature))
            operands = record.operands
            if not special or not any(type(each) is Special and each.name not in seen for each in operands):
                for at in addresses:
                    address = operands[at]
                    if type(address) is Symbol or (type(address) is Address and type(address.base) is Symbol):
                        self._spaces(record, signature, position)
                        break
                return
        for key, demand in instruction_demands(record):
            if key not in seen:
                seen.add(key)
                self._demand(demand, position, target, version)
        if signature is not None:
            self._spaces(record, signature, position)

    def _spelled(self, position: int) -> int:
        """The offset of what begins at `position`, after blanks and a guard."""
        found = _BEFORE.match(self.text, position)
        return position if found is None else found.end()

    def _form(self, form: Form, position: int, target: str, version: int, seen: set[object]) -> None:
        """A form whose operands are wrong: it may also not be one of the target's."""
        if id(form) not in seen and not any(id(each) in seen for each in form.signatures):
            seen.add(id(form))
            if self._demand(Demand(form.spelling, form.targets, {}, None, form), position, target, version):
                seen.update(map(id, form.signatures))

    def _record(
        self,
        record: Union[m.Function, m.Variable, m.RegisterDeclaration, m.Loc],
        position: int,
        target: str,
        version: int,
        seen: set[object],
    ) -> None:
        for key, demand in item_demands(record):
            if key not in seen:
                seen.add(key)
                self._demand(demand, position, target, version)
        if isinstance(record, m.Function) and record.entry:
            size = parameter_bytes(record.parameters)
            if size > MOST_BYTES:
                fault = Fault(
                    f"{record.name} has {size:,} bytes of parameters; {MOST_BYTES:,} are possible", position
                )
                self.faults.append(fault)

    def _demand(self, demand: Demand, position: int, target: str, version: int) -> bool:
        """Whether target or version refuse it; then that is told."""
        ordinal = isa.target_facts().ordinal
        versions = isa.target_facts().versions
        first, removed = demand.targets.get(target), demand.removed.get(target)
        if self._outlived(demand):
            return False
        if first is None:
            message, hint = f"{demand.what} is not available on {target}", f"it needs {needs(demand)}"
        elif version < ordinal[first]:
            message = f"{demand.what} needs PTX ISA {first} on {target}"
            hint = f"the module's .version is {versions[version]}"
        elif removed is not None and version >= ordinal[removed]:
            message, hint = f"{demand.what} was removed from {target} in PTX ISA {removed}", ""
        else:
            return False
        self.faults.append(Fault(message, self._spelled(position), hint))
        return True

    def _outlived(self, demand: Demand) -> bool:
        """Whether the module's own target, an old one, has what the target it is checked for has lost: what was removed
        is judged by the target that the module names.
        """
        if self.old is None:
            return False
        name, version = self.old
        ordinal = isa.target_facts().ordinal
        first, removed = demand.targets.get(name), demand.removed.get(name)
        return (
            first is not None
            and ordinal[first] <= version
            and (removed is None or version < ordinal[removed])
        )

    def _spaces(self, record: Instruction, signature: Signature, position: int) -> None:
        own = next((slot for slot in signature.slots.values() if slot in _SPACES), None)
        for declared, given in zip(signature.operands, record.operands):
            if isinstance(given, Symbol) and declared.kind == "value" and own is not None:
                self._space(record, given, own, position)
            if not isinstance(given, Address) or not isinstance(given.base, Symbol) or declared.space is None:
                continue
            self._space(record, given.base, declared.space, position)

    def _space(self, record: Instruction, given: Symbol, space: str, position: int) -> None:
        wanted = _SPACES.get(space)
        if wanted is None or given.space not in _STATE_SPACES or given.space in wanted:
            return
        where = f"an address in {space}" if space else "a generic address"
        message = f"{given.name} is in .{given.space}; {record.form.spelling} wants {where}"
        self.faults.append(Fault(message, self._spelled(position)))


def _inside(signature: Signature) -> tuple[bool, tuple[int, ...]]:
    """Whether a special register may be among the operands, and the places of what may be or hold a name in a space."""
    operands = signature.operands
    addresses = tuple([i for i, each in enumerate(operands) if each.space is not None or each.symbol])
    return any(each.special for each in operands), addresses
