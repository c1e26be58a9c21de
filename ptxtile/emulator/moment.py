"""What a debugger sees when threads are about to execute an instruction. Arrays are copies: looking changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptxtile import location
from ptxtile.emulator import windows
from ptxtile.emulator.placement import size_of
from ptxtile.emulator.report import at_line
from ptxtile.emulator.widths import Bits, bits_of, bytes_of, is_signed
from ptxtile.errors import EmulatorError
from ptxtile.ir.module import Block, Variable

if TYPE_CHECKING:
    from ptxtile.emulator.lanes import Lanes
    from ptxtile.location import Location

Values = NDArray[Any]


def kind_of(name: str) -> np.dtype[Any]:
    """The NumPy type for values of a PTX type: float32 for .f32, int16 for .s16, bool for .pred, else unsigned."""
    bits = max(bits_of(name), 8)
    if name in ("f16", "f32", "f64"):
        return np.dtype(f"<f{bits // 8}")
    if name == "pred":
        return np.dtype(np.bool_)
    return np.dtype(f"<{'i' if is_signed(name) else 'u'}{min(bits, 64) // 8}")


class RegisterView(Mapping[str, Values]):
    """The registers in scope, by name as the text writes them: `view["%r1"]` is (CTAs, threads of a CTA).

    A register of 128 bits has a trailing axis of two 64-bit halves.
    """

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes

    def __getitem__(self, name: str) -> Values:
        found = self._read(name)[0]
        kind = kind_of(self._types[self._number(name)])
        return self._shaped(found).view(kind)

    def defined(self, name: str) -> NDArray[np.bool_]:
        """Of which threads all bits of a register have been written; all of them with `sanitize=False`."""
        value, shadow = self._read(name)
        if shadow is None:
            return self._shaped(np.ones(len(value), np.bool_))
        marked = shadow != 0 if shadow.ndim == 1 else np.any(shadow != 0, axis=1)
        return self._shaped(~marked)

    def __iter__(self) -> Iterator[str]:
        seen: dict[str, None] = {}
        for scope in self._lanes.step.site.scope.chain():
            seen.update(dict.fromkeys(scope.registers))
        return iter(seen)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def _types(self) -> list[str]:
        lanes = self._lanes
        return lanes.wave.machine.decoded.codes[lanes.registers.name].register_types

    def _number(self, name: str) -> int:
        for scope in self._lanes.step.site.scope.chain():
            if name in scope.registers:
                return scope.registers[name]
        raise KeyError(f"no register {name} is declared here")

    def _read(self, name: str) -> tuple[Bits, Bits | None]:
        return self._lanes.registers.peek(self._number(name))

    def _shaped(self, values: Bits) -> Values:
        wave = self._lanes.wave
        return np.array(values).reshape(wave.ctas, wave.block, *values.shape[1:])


class Moment:
    """The state of the machine just before some threads execute an instruction.

    active    (CTAs, threads of a CTA): who executes it now
    ctas      the numbers in the grid of the CTAs on the machine, in the order of every array's first axis
    """

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        wave = lanes.wave
        active: NDArray[np.bool_] = np.zeros(wave.count, np.bool_)
        active[lanes.threads] = True
        self.active = active.reshape(wave.ctas, wave.block)
        self.ctas: NDArray[np.int64] = wave.number.copy()

    @property
    def line(self) -> int:
        """The line of the PTX text, from 1; 0 where it is not known."""
        return self._lanes.step.site.line

    @property
    def location(self) -> Location | None:
        """The line of Python that wrote the instruction, where Python did."""
        return location.resolve(self._lanes.step.site.instruction.mark)

    @property
    def instruction(self) -> str:
        """The instruction as text."""
        return str(self._lanes.step.site.instruction)

    @property
    def function(self) -> str:
        """The function that it stands in."""
        return self._lanes.registers.name

    @property
    def issue(self) -> int:
        """How many instructions have been issued in this launch, each for all threads that ran together."""
        machine = self._lanes.wave.machine
        return machine.launch.steps - machine.steps_left

    @property
    def registers(self) -> RegisterView:
        """The registers in scope."""
        return RegisterView(self._lanes)

    @property
    def shared(self) -> NDArray[np.uint8]:
        """The bytes of shared memory, (CTAs, bytes of a CTA): static variables first, then dynamic shared memory."""
        spaces = self._lanes.wave.spaces
        own = spaces.shared.data[: spaces.shared_stride * self._lanes.wave.ctas]
        return own.reshape(self._lanes.wave.ctas, -1)[:, : spaces.shared_size].copy()

    def variable(self, name: str) -> Values:
        """A variable by its name: (CTAs, *shape) of a .shared one, its own shape of a .global or .const one.

        An open array (`.extern .shared x[]`) is what the launch gave it. Raises EmulatorError where there is none.
        """
        lanes, wave = self._lanes, self._lanes.wave
        declared = _declared(lanes, name)
        if declared is None:
            raise EmulatorError(f"no variable {name} is declared here", kind="launch")
        kind = kind_of(declared.type)
        shape = (*declared.shape, *((declared.vector,) if declared.vector > 1 else ()))
        if declared.space == "shared":
            from ptxtile.emulator.operands import place_of

            place = place_of(wave.machine.launch.program, lanes.step.site, name)
            assert place is not None
            start = place.address - windows.SHARED_START
            size = size_of(declared)
            if not size:
                unit = bytes_of(declared.type)
                shape = ((wave.spaces.shared_size - start) // unit,)
                size = shape[0] * unit
            own = np.ascontiguousarray(self.shared[:, start : start + size])
            return own.view(kind).reshape(wave.ctas, *shape)
        address = wave.address_of(name)
        if declared.space == "const":
            start = address - windows.CONST_START
            raw = wave.constants.data[start : start + size_of(declared)].tobytes()
        else:
            raw = wave.machine.memory.read(address, size_of(declared))
        return np.frombuffer(raw, kind).reshape(shape).copy()

    def memory(self, address: int, count: int, dtype: str = "uint8") -> Values:
        """`count` elements of a NumPy dtype from a global address, such as a register holds."""
        kind = np.dtype(dtype)
        raw = self._lanes.wave.machine.memory.read(int(address), count * kind.itemsize)
        return np.frombuffer(raw, kind).copy()

    def __repr__(self) -> str:
        lanes = self._lanes
        first = lanes.wave.thread_name(int(lanes.threads[0]))
        more = f" and {lanes.count - 1} more" if lanes.count > 1 else ""
        where = self.location
        return f"{at_line(lanes.step.site)}  [{first}{more}]" + (f"  {where}" if where is not None else "")


def _declared(lanes: Lanes, name: str) -> Variable | None:
    """The declaration of a variable of the module, or of the function that runs."""
    program = lanes.wave.machine.launch.program
    for item in program.module.items:
        if isinstance(item, Variable) and item.name == name:
            return item
    statements = list(program.codes[lanes.registers.name].function.body or ())
    for statement in statements:  # grows while it is walked
        if isinstance(statement, Variable) and statement.name == name:
            return statement
        if isinstance(statement, Block):
            statements.extend(statement.body)
    return None
