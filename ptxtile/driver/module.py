"""Modules in the driver: load with both logs, look up functions and globals, unload."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from ptxtile.driver.device import activate, device
from ptxtile.driver.library import call, session
from ptxtile.driver.status import PTX_RELEASES, cuda_text, failure, highest_ptx, release_for_ptx
from ptxtile.errors import DriverError

__all__ = ["Function", "FunctionFacts", "LoadedModule", "load"]

LOG_BYTES = 1 << 18  # each log; a thousand errors fit. Truncation beyond it is reported.


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What the driver knows of a loaded function. Memory in bytes.

    `ptx_version` and `binary_version` are 10 * major + minor (80 and 90); `cluster` is what `.reqnctapercluster`
    fixed, None where it fixed nothing.
    """

    registers: int
    local_bytes: int
    static_shared: int
    constant_bytes: int
    max_threads: int
    ptx_version: int
    binary_version: int
    cluster: tuple[int, int, int] | None


class Function:
    """A function of a loaded module. Valid until the module is unloaded."""

    __slots__ = ("_lock", "_optin", "_portable", "facts", "handle", "module", "name")

    def __init__(self, module: LoadedModule, name: str, handle: object, facts: FunctionFacts) -> None:
        self.module = module
        self.name = name
        self.handle = handle
        self.facts = facts
        self._optin = 0
        self._portable = True
        self._lock = threading.Lock()

    def allow_dynamic_shared(self, nbytes: int) -> None:
        """Let launches ask for `nbytes` of dynamic shared memory.

        Static and dynamic memory together are held to the device's opt-in limit; a launch beyond it would fail
        with "invalid value".
        """
        limits = device(self.module.ordinal)
        static = self.facts.static_shared
        if static + nbytes > limits.shared_per_block_optin:
            raise DriverError(
                f"{self.name} needs {static + nbytes} bytes of shared memory a block ({static} static and {nbytes} "
                f"dynamic), and {limits.name} has at most {limits.shared_per_block_optin}\n"
                f"  what to do: ask for at most {max(limits.shared_per_block_optin - static, 0)} dynamic bytes"
            )
        if static + nbytes <= limits.shared_per_block or nbytes <= self._optin:
            return
        with self._lock, activate(self.module.ordinal):
            attribute = session().binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            what = f"allow {self.name} {nbytes} bytes of dynamic shared memory"
            call("cuFuncSetAttribute", what, self.handle, attribute, nbytes)
            self._optin = nbytes

    def allow_large_cluster(self) -> None:
        """Let launches use a cluster of more than 8 blocks, which not every device of the target can hold."""
        if not self._portable:
            return
        with self._lock, activate(self.module.ordinal):
            attribute = (
                session().binding.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            )
            call(
                "cuFuncSetAttribute", f"allow {self.name} a cluster of more than 8", self.handle, attribute, 1
            )
            self._portable = False


_FACTS = {
    "registers": "NUM_REGS",
    "local_bytes": "LOCAL_SIZE_BYTES",
    "static_shared": "SHARED_SIZE_BYTES",
    "constant_bytes": "CONST_SIZE_BYTES",
    "max_threads": "MAX_THREADS_PER_BLOCK",
    "ptx_version": "PTX_VERSION",
    "binary_version": "BINARY_VERSION",
}
_CLUSTER = ("REQUIRED_CLUSTER_WIDTH", "REQUIRED_CLUSTER_HEIGHT", "REQUIRED_CLUSTER_DEPTH")


def _facts(name: str, handle: object, has_clusters: bool) -> FunctionFacts:
    attribute = session().binding.CUfunction_attribute

    def read(key: str) -> int:
        which = getattr(attribute, f"CU_FUNC_ATTRIBUTE_{key}")
        return int(call("cuFuncGetAttribute", f"read {key} of {name}", which, handle))

    cluster = tuple(read(key) for key in _CLUSTER) if has_clusters else (0, 0, 0)
    fixed = (cluster[0], cluster[1], cluster[2]) if cluster[0] else None
    return FunctionFacts(**{field: read(key) for field, key in _FACTS.items()}, cluster=fixed)


class LoadedModule:
    """A module in a device's primary context; a context manager that unloads it.

    `info` is what the driver's assembler said beside errors (ptxas info lines), empty for a cubin.
    """

    __slots__ = ("_functions", "_handle", "info", "ordinal")

    def __init__(self, ordinal: int, handle: object, info: str) -> None:
        self.ordinal = ordinal
        self.info = info
        self._handle: object | None = handle
        self._functions: dict[str, Function] = {}

    @property
    def handle(self) -> object:
        """The CUmodule; DriverError once it is unloaded."""
        if self._handle is None:
            raise DriverError("the module was unloaded: load it again")
        return self._handle

    def function(self, name: str) -> Function:
        """The entry of that name; DriverError where the module has none."""
        found = self._functions.get(name)
        if found is None:
            with activate(self.ordinal):
                handle = call("cuModuleGetFunction", f"find the entry {name!r}", self.handle, name.encode())
                facts = _facts(name, handle, device(self.ordinal).has_clusters)
            found = self._functions[name] = Function(self, name, handle, facts)
        return found

    def symbol(self, name: str) -> tuple[int, int]:
        """Address and size in bytes of a module-scope `.global` or `.const` variable."""
        with activate(self.ordinal):
            address, size = call(
                "cuModuleGetGlobal", f"find the variable {name!r}", self.handle, name.encode()
            )
        return int(address), int(size)

    def unload(self) -> None:
        """Unload it; its functions must not be launched any more. A second call does nothing."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._functions.clear()
            with activate(self.ordinal):
                call("cuModuleUnload", "unload the module", handle)

    def __enter__(self) -> LoadedModule:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.unload()
        except DriverError:
            if error is None:  # what went wrong first is what matters
                raise


def _text(buffer: bytearray) -> str:
    """A log up to its NUL, with a last line that says so if it filled the buffer."""
    end = buffer.find(0)
    whole = bytes(buffer if end < 0 else buffer[:end]).decode(errors="replace").strip()
    if end < 0 or end >= len(buffer) - 1:
        whole += f"\n(the log was cut off at {len(buffer)} bytes)"
    return whole


def _options(binding: Any, info: bytearray, error: bytearray, optimization: int | None) -> dict[Any, object]:
    option = binding.CUjit_option
    chosen: dict[Any, object] = {
        option.CU_JIT_INFO_LOG_BUFFER: info,
        option.CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: len(info),
        option.CU_JIT_ERROR_LOG_BUFFER: error,
        option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: len(error),
        option.CU_JIT_LOG_VERBOSE: 1,
    }
    if optimization is not None:
        chosen[option.CU_JIT_OPTIMIZATION_LEVEL] = optimization
    return chosen


_HEADER = {key: re.compile(rf"^\s*\.{key}\s+([\w.]+)", re.MULTILINE) for key in ("version", "target")}


def _versions(image: bytes, ordinal: int) -> tuple[str, str]:
    """Lines that set the module's version and target beside the driver's, and advice if the version is too new."""
    limits = device(ordinal)
    cuda = session().version
    highest = highest_ptx(cuda)
    lines = [
        f"driver: CUDA {cuda_text(cuda)}" + (f", which takes PTX up to {highest}" if highest else ""),
        f"device {ordinal}: {limits.name}, {limits.target}",
    ]
    if image.startswith(b"\x7fELF"):
        return "\n".join([*lines, "module: a cubin"]), ""
    head = image[:4096].decode(errors="replace")
    found = {key: pattern.search(head) for key, pattern in _HEADER.items()}
    version, target = (match.group(1) if match else "?" for match in found.values())
    lines.append(f"module: PTX {version} for {target}")
    if not found["version"] or not re.fullmatch(r"\d+\.\d+", version):
        return "\n".join(lines), ""
    release = release_for_ptx(version)
    if highest is None or cuda > PTX_RELEASES[-1].cuda or (release is not None and release.cuda <= cuda):
        return "\n".join(lines), ""
    needed = f"CUDA {release.cuda_text}" if release else "a later CUDA"
    branch = f" (branch {release.driver})" if release and release.driver else ""
    advice = (
        f"PTX {version} needs a driver of {needed}{branch} or later: pin ptx_version={highest!r} if the module's "
        "forms allow it, update the driver, or load a cubin from `ptxtile.assemble`"
    )
    return "\n".join(lines), advice


def load(image: str | bytes, ordinal: int = 0, *, optimization: int | None = None) -> LoadedModule:
    """Load a module into the primary context of a device.

    Args:
        image: PTX text, or a cubin or PTX as bytes. A NUL is appended to PTX here; the text has none.
        ordinal: the device.
        optimization: 0 to 4 for the driver's assembler; its default is 4.

    Raises:
        DriverError: with the logs, the versions of module and driver, and what to do.
    """
    data = image.encode() if isinstance(image, str) else bytes(image)
    passed = data if data.startswith(b"\x7fELF") or data.endswith(b"\0") else data + b"\0"
    info, error = bytearray(LOG_BYTES), bytearray(LOG_BYTES)
    with activate(ordinal) as state:
        options = _options(state.binding, info, error, optimization)
        result, handle = state.binding.cuModuleLoadDataEx(
            passed, len(options), list(options), list(options.values())
        )
        if int(result):
            log = "\n".join(part for part in (_text(error), _text(info)) if part)
            notes, advice = _versions(data, ordinal)
            what = f"load the module on device {ordinal}"
            raise failure(state.binding, result, what, hint=advice, log=log, notes=notes)
    return LoadedModule(ordinal, handle, _text(info))
