"""Modules without the decorator: `pt.ModuleBuilder`, entries as `with` blocks."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType

from ptxtile import location, tracing
from ptxtile.builder import parameters
from ptxtile.builder.entry import block_shape, check_name, directives, extents
from ptxtile.builder.trace import Launch, Trace, Traced
from ptxtile.errors import TraceError
from ptxtile.ir.inference import infer
from ptxtile.ir.module import Item, Module, Variable


class Entry:
    """What `with builder.entry(…) as k` gives: the parameters' values as attributes and items, `k.A` or `k["A"]`."""

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> object:
        values = self._values
        if name not in values:
            raise TraceError(f"this entry has no parameter {name!r}; it has {', '.join(values) or 'none'}")
        return values[name]

    def __getattr__(self, name: str) -> object:
        values = self.__dict__.get("_values", {})
        if name not in values and name.startswith("_"):
            raise AttributeError(name)  # what copy, pickle and notebooks ask every object for
        return self[name]


class _Open(AbstractContextManager[Entry]):
    def __init__(self, builder: ModuleBuilder, name: str, planned: parameters.Plan, launch: Launch) -> None:
        self._builder = builder
        self._planned = planned
        self._launch = launch
        self._trace = Trace(name, launch)
        self._mark = location.mark(3)

    def __enter__(self) -> Entry:
        self._builder._open(self._trace.name)
        self._use = tracing.use(self._trace)
        self._use.__enter__()
        return Entry(parameters.bind_all(self._trace, self._planned))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                done = self._trace.finish(self._planned.parameters, directives(self._launch), self._mark)
                self._builder._entries[done.function.name] = done
        finally:
            self._use.__exit__(None, None, None)


class ModuleBuilder:
    """Builds a module entry by entry.

        builder = pt.ModuleBuilder()
        with builder.entry("double", {"A": pt.Tensor((32,), pt.float32)}, block=32) as k:
            i = pt.thread_idx("x")
            k.A[i] = k.A[i] + k.A[i]
        print(builder.module())

    `target` and `version` pin what is otherwise inferred from the forms.
    """

    def __init__(self, target: str | None = None, version: str | None = None) -> None:
        self.target = target
        self.version = version
        self._entries: dict[str, Traced] = {}

    def entry(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        *,
        block: object = None,
        grid: object = None,
        cluster: object = None,
    ) -> AbstractContextManager[Entry]:
        """Open an entry. `params` maps names to descriptions (pt.Tensor, pt.Pointer, dtypes), in order.

        TraceError if the module has an entry of that name, or PTX allows no such name.
        """
        self._open(check_name(name))
        launch = Launch(
            grid=extents("grid", grid) if grid is not None else (None, None, None),
            block=block_shape(block) if block is not None else (None, None, None),
            cluster=extents("cluster", cluster) if cluster is not None else None,
        )
        return _Open(self, name, parameters.plan(params or {}), launch)

    def _open(self, name: str) -> None:
        if name in self._entries:
            raise TraceError(f"this module already has an entry {name!r}")

    def module(self) -> Module:
        """The module so far: the entries whose blocks ended without an error."""
        items: list[Item] = []
        for traced in self._entries.values():
            # a function of the driver's is declared once
            items.extend(each for each in traced.variables if isinstance(each, Variable) or each not in items)
            items.append(traced.function)
        target, version = infer(items, target=self.target, version=self.version)
        return Module(version, target, tuple(items))

    def dynamic_shared(self, name: str) -> int:
        """Bytes of dynamic shared memory that a launch of the entry `name` must add."""
        if name not in self._entries:
            raise TraceError(f"this module has no entry {name!r}")
        return self._entries[name].dynamic_shared

    def __str__(self) -> str:
        return str(self.module())
