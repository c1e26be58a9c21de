"""Launching a kernel on the emulator: with host arrays, or on a device memory that is kept between launches."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Union

from ptxtile.emulator import windows
from ptxtile.emulator.arguments import Argument, pack, place_arrays, take_back
from ptxtile.emulator.debugger import current
from ptxtile.emulator.decode import Decoded, decode
from ptxtile.emulator.machine import STEP_BUDGET, Extent, Launch, Machine
from ptxtile.emulator.memory import Memory, Store
from ptxtile.emulator.placement import align_up, alignment_of, size_of
from ptxtile.emulator.program import Code, Program, prepare
from ptxtile.emulator.text import lines_of, read
from ptxtile.emulator.variables import initial_bytes
from ptxtile.errors import EmulatorError
from ptxtile.ir.module import Module

Size = Union[int, Sequence[int]]
MOST = {"block": (1024, 1024, 64), "grid": ((1 << 31) - 1, 65535, 65535), "cluster": (16, 16, 16)}
MOST_THREADS = 1024
MOST_CLUSTER = 16


def launch(
    module: Module | str,
    name: str,
    grid: Size,
    block: Size,
    args: Sequence[Argument],
    cluster: Size | None = None,
    dynamic_shared: int = 0,
    sanitize: bool = True,
    seed: int = 0,
) -> None:
    """Run the entry `name` of a module, given as a Module or as PTX text.

    grid, block, cluster   CTAs of the grid, threads of a CTA, CTAs of a cluster: a number, or up to three (x, y, z)
    args                   one for each parameter. An array goes in as the address of a copy of it, and is changed in
                           place when the kernel has ended; arrays that share memory share the copy. A scalar becomes
                           the parameter's type. A `.b8 x[N]` parameter takes N bytes or an array of N bytes.
    dynamic_shared         bytes of shared memory beside the static variables
    sanitize               stop on what DESIGN section 6 lists: an EmulatorError with `.kind`, `.line`, `.location`.
                           Bounds and alignment are checked in any case.
    seed                   chooses the order in which asynchronous operations complete
    """
    loaded = Loaded(module)
    function = loaded.program.code(name).function
    if len(args) != len(function.parameters):
        pack(function, args, [None] * len(args))
    copies = place_arrays(loaded.memory, args, function)
    loaded.launch(
        name,
        grid,
        block,
        pack(function, args, copies),
        cluster=cluster,
        dynamic_shared=dynamic_shared,
        sanitize=sanitize,
        seed=seed,
    )
    take_back(loaded.memory, copies)


class Loaded:
    """A module in a device memory: its variables have addresses there, and live as long as this object.

    program   the module made ready      memory   where its .global variables, and everything else on the device, live
    """

    def __init__(self, module: Module | str, memory: Memory | None = None) -> None:
        self.memory = Memory() if memory is None else memory
        self.program, self._entries = _ready(module)
        self.addresses: dict[str, int] = {}
        self.constants = self._place()

    def _place(self) -> Store:
        """Give the module's variables their addresses and first values (PTX ISA 5.4.4)."""
        end = windows.CONST_START
        for variable in self.program.variables:
            if variable.space == "const":
                end = align_up(end, alignment_of(variable))
                self.addresses[variable.name] = end
                end += size_of(variable)
            else:
                self.addresses[variable.name] = self.memory.allocate(
                    size_of(variable),
                    name=f"variable {variable.name}",
                    alignment=max(alignment_of(variable), 16),
                    written=True,
                )
        constants = Store("constant memory", windows.CONST_START, end - windows.CONST_START, readonly=True)
        for variable in self.program.variables:
            if variable.initial is None:
                continue
            raw = initial_bytes(variable, self._generic)
            if variable.space == "const":
                constants.write(self.addresses[variable.name] - windows.CONST_START, raw)
            else:
                self.memory.write(self.addresses[variable.name], raw)
        return constants

    def _generic(self, name: str, generic: bool) -> int:
        """The address of a symbol that an initialiser mentions."""
        if name in self.addresses:
            constant = any(v.name == name and v.space == "const" for v in self.program.variables)
            return self.addresses[name] + (windows.CONST_WINDOW if constant and generic else 0)
        if name in self.program.functions:
            return self.program.functions[name]
        raise EmulatorError(f"an initialiser names {name}, which has no address", kind="undeclared")

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a .global variable of the module."""
        for variable in self.program.variables:
            if variable.name == name and variable.space == "global":
                return self.addresses[name], size_of(variable)
        raise EmulatorError(f"the module has no .global variable {name!r}", kind="launch")

    def launch(
        self,
        name: str,
        grid: Size,
        block: Size,
        parameters: bytes,
        *,
        cluster: Size | None = None,
        dynamic_shared: int = 0,
        sanitize: bool = True,
        seed: int = 0,
        steps: int = STEP_BUDGET,
    ) -> None:
        """Run an entry whose parameter space holds `parameters` (see `arguments.pack`).

        steps   instruction issues, each for all threads that run together, after which the launch counts as endless
        """
        entry = self.program.code(name)
        if not entry.function.entry:
            raise EmulatorError(f"{name} is a .func: only an .entry can be launched", kind="launch")
        given = _extent("cluster", cluster) if cluster is not None else declared_cluster(entry)
        launched = Launch(
            self.program,
            entry,
            _extent("grid", grid, empty=True),
            _extent("block", block),
            given,
            dynamic_shared,
            parameters,
            sanitize,
            seed,
            steps,
        )
        _check(launched)
        for store in self.memory.stores():
            store.races = None
        if 0 not in launched.grid:
            Machine(launched, self._decoded(entry), self.memory, self.addresses, self.constants).run()

    def _decoded(self, entry: Code) -> Decoded:
        name = entry.function.name
        if name not in self._entries:
            self._entries[name] = decode(self.program, entry)
        tracer = current()
        return self._entries[name] if tracer is None else tracer.traced(self._entries[name])


_seen: OrderedDict[object, tuple[object, Program, dict[str, Decoded]]] = OrderedDict()
_SEEN = 16


def _ready(module: Module | str) -> tuple[Program, dict[str, Decoded]]:
    """The program of a module and its decoded entries; the last few are kept, since kernels are launched again."""
    if not isinstance(module, (Module, str)):
        raise EmulatorError(f"a module is PTX text or a Module, not {type(module).__name__}", kind="launch")
    key: object = module if isinstance(module, str) else id(module)
    found = _seen.get(key)
    if found is None:
        given, where = read(module) if isinstance(module, str) else (module, lines_of(module))
        found = _seen[key] = (module, prepare(given, where), {})
        if len(_seen) > _SEEN:
            _seen.popitem(last=False)
    return found[1], found[2]


def _extent(what: str, size: Size, empty: bool = False) -> Extent:
    """One, two or three numbers as (x, y, z)."""
    try:
        numbers = [operator.index(n) for n in (size if isinstance(size, Iterable) else [size])]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or any(n < (0 if empty else 1) for n in numbers):
        raise EmulatorError(f"{what} must be one to three positive numbers, not {size!r}", kind="launch")
    numbers += [1] * (3 - len(numbers))
    for axis, number, most in zip("xyz", numbers, MOST[what]):
        if number > most:
            raise EmulatorError(f"{what}.{axis} is {number}; {most} is the most", kind="launch")
    return numbers[0], numbers[1], numbers[2]


def declared_cluster(entry: Code) -> Extent:
    """The cluster that `.reqnctapercluster` demands, else one CTA (PTX ISA 11.6)."""
    for directive in entry.function.directives:
        if directive.name == "reqnctapercluster":
            numbers = [int(value) for value in directive.values if isinstance(value, int)]
            return _extent("cluster", numbers)
    return 1, 1, 1


def _check(launched: Launch) -> None:
    """Refuse what a device refuses at launch."""
    threads = launched.block[0] * launched.block[1] * launched.block[2]
    if threads > MOST_THREADS:
        raise EmulatorError(f"a CTA of {threads} threads; {MOST_THREADS} is the most", kind="launch")
    for directive in launched.entry.function.directives:
        numbers = [int(value) for value in directive.values if isinstance(value, int)]
        padded = (*numbers, 1, 1, 1)[:3]
        if directive.name == "reqntid" and padded != launched.block:
            raise EmulatorError(f"the entry demands a block of {padded}, not {launched.block}", kind="launch")
        if directive.name == "maxntid" and threads > padded[0] * padded[1] * padded[2]:
            most = padded[0] * padded[1] * padded[2]
            raise EmulatorError(
                f"the entry allows at most {most} threads a CTA, not {threads}", kind="launch"
            )
    if launched.dynamic_shared < 0:
        raise EmulatorError(f"dynamic_shared is {launched.dynamic_shared}, below 0", kind="launch")
    shared = launched.program.static_bytes + launched.dynamic_shared
    if shared > windows.SHARED_LIMIT:
        raise EmulatorError(
            f"{shared} bytes of shared memory; {windows.SHARED_LIMIT} is the most", kind="launch"
        )
    size = launched.cluster[0] * launched.cluster[1] * launched.cluster[2]
    if size > MOST_CLUSTER:
        raise EmulatorError(f"a cluster of {size} CTAs; {MOST_CLUSTER} is the most", kind="launch")
    if any(g % c for g, c in zip(launched.grid, launched.cluster)):
        raise EmulatorError(
            f"a cluster of {launched.cluster} does not divide a grid of {launched.grid}", kind="launch"
        )
