"""An entry of a module, ready for either machine: its text, its parameters, its launchers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Union

from ptxtile import driver
from ptxtile.errors import DriverError, OperandError
from ptxtile.execute.lines import framed, locator
from ptxtile.execute.logs import explained, warn
from ptxtile.execute.parameters import Place, places
from ptxtile.ir.module import Function, Module
from ptxtile.ir.reader import parse
from ptxtile.ir.writer import LineInfo, write

__all__ = ["Entry", "ModuleLike", "as_module", "entry_of"]

ModuleLike = Union[Module, str]
"""A Module, or its text."""


def as_module(module: ModuleLike) -> Module:
    """The Module of a text; ModuleSyntaxError where it is none."""
    if isinstance(module, Module):
        return module
    if not isinstance(module, str):
        raise OperandError(f"a module is a ptxtile.Module or PTX text, not {type(module).__name__}")
    return parse(module)


class Entry:
    """One `.entry` of a module. Keep it: it remembers the module's text and what was prepared on each device."""

    __slots__ = ("_given", "_launchers", "_lineinfo", "_text", "function", "module", "name", "places")

    def __init__(self, module: ModuleLike, name: str, *, lineinfo: LineInfo = None) -> None:
        """Look the entry up.

        Args:
            module: a Module, or PTX text, which is loaded as it is.
            name: the entry.
            lineinfo: how a Module is written; see `ir.writer.write`.

        Raises:
            ModuleSyntaxError: the text is no module.
            OperandError: no entry of that name, or a parameter of a type that no entry can take.
        """
        self.module = as_module(module)
        self.name = name
        self._given = module
        self._text = module if isinstance(module, str) else None
        self._lineinfo: LineInfo = lineinfo
        self.function = self._find(name)
        self.places: tuple[Place, ...] = places(self.function)
        self._launchers: dict[tuple[int, driver.Geometry], tuple[driver.Session, driver.Launcher]] = {}

    def _find(self, name: str) -> Function:
        entries = [item for item in self.module.functions if item.entry and item.body is not None]
        for item in entries:
            if item.name == name:
                return item
        have = ", ".join(item.name for item in entries) or "none"
        raise OperandError(f"the module has no entry {name!r}; it has {have}")

    @property
    def source(self) -> ModuleLike:
        """What the entry was made from: lines of errors are lines of the text that was given."""
        return self._given

    @property
    def text(self) -> str:
        """The module's text, written once."""
        if self._text is None:
            self._text = write(self.module, self._lineinfo)
        return self._text

    def loaded(self, ordinal: int) -> driver.LoadedModule:
        """The module on a device, loaded once for equal text.

        Raises:
            DriverError: the driver refused it; the message has the Python lines of what its log names.
        """
        text = self.text
        made: driver.LoadedModule = driver.session().once(
            "module " + text, ordinal, lambda: self._load(ordinal)
        )
        return made

    def _load(self, ordinal: int) -> driver.LoadedModule:
        locate = locator(self.module, self._lineinfo)
        try:
            made = driver.load(self.text, ordinal)
        except DriverError as error:
            raise explained(error, locate) from error
        warn(made.info, locate, framed(self.module) if made.info else ())
        return made

    def launcher(self, ordinal: int, shape: driver.Geometry) -> driver.Launcher:
        """The launcher for a device and a geometry, made once."""
        session = driver.session()
        found = self._launchers.get((ordinal, shape))
        if found is not None and found[0] is session:
            return found[1]
        slots = [driver.Slot(place.code, place.offset, place.size) for place in self.places]
        made = driver.Launcher(self.loaded(ordinal).function(self.name), shape, slots)
        self._launchers[ordinal, shape] = session, made
        return made


_KEPT = 256
_entries: OrderedDict[tuple[object, str], Entry] = OrderedDict()
_lock = threading.Lock()


def entry_of(module: ModuleLike, name: str) -> Entry:
    """An Entry for a module or text, the same one as long as it is among the last 256 used."""
    # A Module is known by identity, since its hash walks all of it; the Entry keeps it alive, and so its id unique.
    key = (module if isinstance(module, str) else id(module), name)
    with _lock:
        found = _entries.get(key)
        if found is not None:
            _entries.move_to_end(key)
            return found
    made = Entry(module, name)
    with _lock:
        _entries[key] = made
        if len(_entries) > _KEPT:
            _entries.popitem(last=False)
    return made
