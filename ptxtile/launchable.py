"""The kernel object: `@pt.kernel`, its specialisations, and launching them."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ptxtile import location, tracing
from ptxtile.builder import parameters
from ptxtile.builder.convert import counted
from ptxtile.builder.entry import block_shape, check_name, extents, trace_entry
from ptxtile.builder.parameters import argument
from ptxtile.builder.signature import described
from ptxtile.builder.tensor_map import TensorMap
from ptxtile.builder.tensors import Dim, Tensor
from ptxtile.builder.trace import Launch
from ptxtile.errors import OperandError, TraceError
from ptxtile.ir import collector_paused
from ptxtile.ir.inference import infer
from ptxtile.ir.module import Item, Module
from ptxtile.ir.tensor_map import BYTES, Mapped
from ptxtile.location import Mark

Extents = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Specialization:
    """One traced version of a kernel: the module, its text, and what a launch must add (bytes of shared memory)."""

    module: Module
    text: str
    dynamic_shared: int


class Kernel:
    """A traced kernel; made by `@pt.kernel`. Call it with its arguments to run it.

    Positional parameters are tensors, scalars and pointers, as annotated; keyword-only parameters are static Python
    values, one specialisation each. Traces are kept; tracing the same Python function twice gives the same bytes.
    """

    def __init__(
        self,
        function: Callable[..., object],
        *,
        grid: object,
        block: object,
        cluster: object,
        target: str | None,
        namespace: Mapping[str, object],
        mark: Mark,
    ) -> None:
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.__name__ = self.name = check_name(function.__name__)
        self.__module__, self.__qualname__ = function.__module__, function.__qualname__
        self.grid = grid
        self.block = block if callable(block) else block_shape(block)
        self.cluster = None if cluster is None else extents("cluster", cluster)
        self.target = target
        self._mark = mark
        self._plan, self._defaults = described(function, namespace)
        self._specializations: dict[object, Specialization] = {}
        self._lock = threading.RLock()
        if not callable(grid):
            extents("grid", grid)

    def __repr__(self) -> str:
        return f"<ptxtile kernel {self.name}({', '.join((*self._plan.names, *self._defaults))})>"

    def __reduce__(self) -> str:
        """Pickled as a function is: by name, so it must be found in its module."""
        return self.__qualname__

    # --- tracing --------------------------------------------------------------------------------------------------
    def _statics(self, given: Mapping[str, object]) -> dict[str, object]:
        unknown = sorted(set(given) - set(self._defaults))
        if unknown:
            known = ", ".join(self._defaults)
            has = f"its static parameters are {known}" if known else "it has no static parameters"
            if unknown[0] in self._plan.names:
                has = f"the arguments {', '.join(self._plan.names)} are given by position"
            raise OperandError(f"{self.name}: unknown keyword {unknown[0]!r}; {has}")
        values = {**self._defaults, **given}
        missing = [name for name, value in values.items() if value is inspect.Parameter.empty]
        if missing:
            raise OperandError(f"{self.name}: the static parameter {missing[0]!r} needs a value")
        return values

    def _block(self, override: object, statics: Mapping[str, object]) -> Extents:
        checked = self.block  # when the kernel was made, unless it is computed
        if override is None and isinstance(checked, tuple):
            return checked
        block = checked if override is None else override
        return block_shape(_call(block, statics, self.name, "block") if callable(block) else block)

    def _specialize(
        self, statics: Mapping[str, object], target: str | None, block: Extents, grid: Extents | None
    ) -> Specialization:
        try:
            key = (target, block, grid, *((name, _distinct(value)) for name, value in statics.items()))
            found = self._specializations.get(key)
        except TypeError:
            bad = next(name for name, value in statics.items() if not _hashable(value))
            raise OperandError(
                f"{self.name}: the static parameter {bad!r} must be hashable, not {statics[bad]!r}"
            ) from None
        if found is None:
            with self._lock:
                found = self._specializations.get(key)
                if found is None:
                    found = self._trace(statics, target, block, grid)
                    self._specializations[key] = found
        return found

    def _trace(
        self, statics: Mapping[str, object], target: str | None, block: Extents, grid: Extents | None
    ) -> Specialization:
        launch = Launch(grid=grid or (None, None, None), block=block, cluster=self.cluster)

        def body(values: dict[str, object]) -> object:
            return self.__wrapped__(**values, **statics)

        with collector_paused():
            traced = trace_entry(self.name, self._plan, launch, body, self._mark)
            items: tuple[Item, ...] = (*traced.variables, traced.function)
            chosen, version = infer(items, target=target or self.target)
            module = Module(version, chosen, items)
            return Specialization(module, str(module), traced.dynamic_shared)

    def _static_grid(self, override: object = None) -> Extents | None:
        grid = self.grid if override is None else override
        return None if callable(grid) else extents("grid", grid)

    def module(self, target: str | None = None, **static: object) -> Module:
        """The immutable module of a specialisation, for `target` or, without one, for the broadest that its forms
        allow. TargetError if `target` lacks a form."""
        statics = self._statics(static)
        return self._specialize(statics, target, self._block(None, statics), self._static_grid()).module

    def ptx(self, target: str | None = None, **static: object) -> str:
        """The module's text."""
        statics = self._statics(static)
        return self._specialize(statics, target, self._block(None, statics), self._static_grid()).text

    def cubin(self, target: str, **static: object) -> bytes:
        """The machine code for `target`, made by NVIDIA's assembler; no GPU is needed.

        AssemblerError if the assembler refuses, or is not installed (`pip install 'ptxtile[assemble]'`).
        """
        from ptxtile.execute import assemble_module

        return assemble_module(self.module(target, **static), target)

    # --- launching ------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **static: Any) -> None:
        """Run the kernel: NumPy arguments are copied in and out, device arrays are used in place."""
        self.launch(*args, **static)

    def launch(
        self,
        *args: Any,
        grid: object = None,
        block: object = None,
        stream: object = None,
        device: int | str | None = None,
        programmatic: bool = False,
        **static: object,
    ) -> None:
        """Run the kernel with another grid or block, on a stream (a handle, or an object with `__cuda_stream__`), or
        on a device: a CUDA ordinal or "emulator" (default: PTXTILE_DEVICE, else the GPU if there is one).

        `programmatic`: the grid may start before the one ahead of it in the stream has ended, once all of that one's
        CTAs have called pt.launch_dependents() or ended; pt.wait_on_dependencies() waits for its memory. It takes
        device arrays to matter: NumPy arrays are copied, which waits. On the emulator it changes nothing.

        OperandError for arguments that do not fit the parameters. A grid computed from sizes that comes out empty is
        nothing to do.
        """
        from ptxtile.execute import run, target_here

        if tracing.active() is not None:
            raise TraceError(
                f"{self.name} was launched inside a trace: a kernel calls no kernel; inline a @pt.function instead"
            )
        statics = self._statics(static)
        sizes, shapes = self._check(args)
        shape = self._block(block, statics)
        launched = self._grid(grid, {**statics, **sizes, **dict(zip(self._plan.names, args))})
        if 0 in launched:
            return
        fixed = None if callable(self.grid if grid is None else grid) else launched
        made = self._specialize(statics, None, shape, fixed)
        other = target_here(made.module.target, args, device) if self.target is None else None
        if other is not None:
            made = self._specialize(statics, other, shape, fixed)
        run(
            made.module,
            self.name,
            (*self._mapped(args, shapes), *sizes.values()),
            grid=launched,
            block=shape,
            cluster=self.cluster,
            dynamic_shared=made.dynamic_shared,
            stream=stream,
            device=device,
            programmatic=programmatic,
        )

    def _grid(self, override: object, known: Mapping[str, object]) -> Extents:
        """The grid of a launch; one that is computed may be empty."""
        chosen = self.grid if override is None else override
        if not callable(chosen):
            return extents("grid", chosen)
        return extents("grid", _call(chosen, known, self.name, "grid"), least=0)

    def _check(self, args: tuple[object, ...]) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
        """The run-time sizes that the arguments have, and the arrays' shapes; OperandError where an argument does not
        fit its description."""
        planned = self._plan
        if len(args) != len(planned.names):
            raise OperandError(
                f"{self.name} takes {len(planned.names)} arguments ({', '.join(planned.names)}); "
                f"{counted(len(args))} given"
            )
        found: dict[str, tuple[int, str]] = {}
        shapes: dict[str, tuple[int, ...]] = {}
        for name, description, given in zip(planned.names, planned.descriptions, args):
            if isinstance(description, Tensor) or (isinstance(description, TensorMap) and not _ready(given)):
                what = f"{self.name}: argument {name!r}"
                shapes[name] = _check_tensor(what, description, given, found)
        for dim in planned.dims:
            if dim.name not in found:
                raise OperandError(
                    f"{self.name}: the size {dim.name} is known from no argument: a tensor map that is encoded already "
                    "does not say it"
                )
            size, where = found[dim.name]
            if size % dim.multiple_of:
                raise OperandError(
                    f"{where}: the size {dim.name} is {size} and must be a multiple of {dim.multiple_of}"
                )
            if size > parameters.GREATEST_SIZE:
                raise OperandError(
                    f"{where}: the size {dim.name} is {size}; a run-time size is at most 2**31 - 1"
                )
        return {dim.name: found[dim.name][0] for dim in planned.dims}, shapes

    def _mapped(self, args: tuple[object, ...], shapes: Mapping[str, tuple[int, ...]]) -> list[object]:
        """The arguments, an array for a tensor map with the map that it has there."""
        made: list[object] = []
        for name, description, given in zip(self._plan.names, self._plan.descriptions, args):
            if isinstance(description, TensorMap) and name in shapes:
                map_ = description.of(shapes[name])
                map_.check(f"{self.name}: argument {name!r}")
                given = Mapped(map_, given)
            made.append(argument(description, given))
        return made


def kernel(
    function: None = None,
    *,
    grid: object = None,
    block: object = None,
    cluster: object = None,
    target: str | None = None,
) -> Callable[[Callable[..., object]], Kernel]:
    """Make a kernel of a Python function, which is traced: its `if` and `for` choose and unroll.

    grid     (x, y, z), an integer, or a function of the run-time sizes, scalars and static values by name; always due
    block    threads of a CTA, (x, y, z) or an integer, or a function of the static values; always due
    cluster  CTAs of a cluster, written into the module (.reqnctapercluster)
    target   pins the module's target; without it the broadest that the forms allow

    TraceError for a name, a parameter or a shape that no kernel can have.
    """
    frame = sys._getframe(1)
    noted = location.mark(2)
    missing = [f"{name}=" for name, given in (("grid", grid), ("block", block)) if given is None]
    if missing or function is not None:
        lacks = f"needs {' and '.join(missing)}" if missing else "takes no function"
        raise TraceError(
            f"pt.kernel {lacks}: write @pt.kernel(grid=…, block=…) above the function, blocks of the grid and threads "
            "of a block" + location.quote(location.resolve(noted))
        )

    def decorate(function: Callable[..., object]) -> Kernel:
        if not inspect.isfunction(function):
            raise TraceError(f"@pt.kernel decorates a Python function, not {function!r}")
        return Kernel(
            function,
            grid=grid,
            block=block,
            cluster=cluster,
            target=target,
            namespace=frame.f_locals,
            mark=noted,
        )

    return decorate


# --- grids and static values ------------------------------------------------------------------------------------------
def _call(what: Any, known: Mapping[str, object], kernel_name: str, word: str) -> object:
    """Call a grid or block function with the values it names."""
    wanted = _asked(what) if _hashable(what) else _asked.__wrapped__(what)
    missing = [name for name, due in wanted.items() if due and name not in known]
    if missing:
        have = ", ".join(known) or "nothing"
        raise TraceError(f"{kernel_name}: {word}= asks for {missing[0]!r}; it may ask for {have}")
    return what(**{name: known[name] for name in wanted if name in known})


@lru_cache(maxsize=256)
def _asked(what: Any) -> dict[str, bool]:
    """The parameters of a function, and whether each is due. Remembered: inspect takes longer than a launch."""
    found = inspect.signature(what).parameters
    return {name: found[name].default is inspect.Parameter.empty for name in found}


def _distinct(value: object) -> object:
    """A key that tells apart what Python calls equal and a trace does not: 1, 1.0 and True; 0.0 and -0.0."""
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, tuple):
        return type(value), *map(_distinct, value)
    return type(value), value


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


# --- arguments ------------------------------------------------------------------------------------------------------
def _ready(given: object) -> bool:
    """Whether an argument for a tensor map is a map already."""
    return isinstance(given, (bytes, bytearray, memoryview)) and len(bytes(given)) == BYTES


def _check_tensor(
    what: str, description: Tensor | TensorMap, given: Any, found: dict[str, tuple[int, str]]
) -> tuple[int, ...]:
    """The shape of an array; OperandError where it is not as described."""
    from ptxtile.execute import array_facts

    facts = array_facts(what, given)
    if facts.dtype is not description.dtype:
        raise OperandError(f"{what} is {facts.dtype.name} and must be {description.dtype.name}")
    if len(facts.shape) != len(description.dims) or any(
        isinstance(due, int) and due != size for due, size in zip(description.dims, facts.shape)
    ):
        dims = ", ".join(part.name if isinstance(part, Dim) else str(part) for part in description.dims)
        raise OperandError(f"{what} has shape {facts.shape} and must have ({dims})")
    for due, size in zip(description.dims, facts.shape):
        if isinstance(due, Dim):
            known, where = found.setdefault(due.name, (size, what))
            if known != size:
                raise OperandError(
                    f"{what}: the size {due.name} is {size} here and {known} in {where.rpartition(' ')[2]}"
                )
    if isinstance(description, TensorMap):
        return facts.shape  # its encoding checks the address
    if facts.address is not None and facts.address % description.alignment:
        raise OperandError(
            f"{what} starts at address {facts.address:#x}, which is not {description.alignment}-byte aligned as "
            f"its description says (align=)"
        )
    return facts.shape
