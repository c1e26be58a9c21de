"""Streams and events."""

from __future__ import annotations

from typing import Any, Protocol, Union

from ptxtile.driver.device import activate
from ptxtile.driver.library import call, session
from ptxtile.errors import DriverError, OperandError

__all__ = [
    "Event",
    "Stream",
    "StreamLike",
    "is_capturing",
    "order_after",
    "stream_handle",
    "synchronize_stream",
]


class HasCudaStream(Protocol):
    """An object of another library that stands for a stream: `__cuda_stream__()` gives (0, handle)."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


StreamLike = Union[int, HasCudaStream, None]
"""A CUstream as an integer, an object with `__cuda_stream__`, or None for the legacy default stream."""


def stream_handle(stream: StreamLike | object) -> int:
    """The CUstream as an integer; OperandError for anything that is no stream."""
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        answer = protocol() if callable(protocol) else protocol
        if isinstance(answer, tuple) and len(answer) == 2 and answer[0] == 0:
            return int(answer[1])
        raise OperandError(f"__cuda_stream__ of {type(stream).__name__} gave {answer!r}, not (0, handle)")
    raise OperandError(
        f"{stream!r} is no stream: give a CUstream handle as an int, an object with __cuda_stream__, or None"
    )


def is_capturing(handle: int) -> bool:
    """Whether work on the stream goes into a graph instead of to the device."""
    status = call(
        "cuStreamIsCapturing", "ask whether the stream is being captured", session().binding.CUstream(handle)
    )
    return int(status) != 0


class Stream:
    """A stream of our own, which does not wait for the legacy default stream. Also a `__cuda_stream__` object."""

    __slots__ = ("_handle", "_made", "ordinal")

    def __init__(self, ordinal: int = 0) -> None:
        self.ordinal = ordinal
        with activate(ordinal) as state:
            flag = int(state.binding.CUstream_flags.CU_STREAM_NON_BLOCKING)
            self._made: Any = call("cuStreamCreate", "make a stream", flag)
        self._handle = int(self._made)

    @property
    def handle(self) -> int:
        """The CUstream; DriverError once it is closed."""
        if self._made is None:
            raise DriverError("the stream was closed: make another")
        return self._handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait for its work; raises the DriverError that it ended in."""
        synchronize_stream(self.handle, self.ordinal)

    def close(self) -> None:
        """Destroy it once its work is done. A second call does nothing."""
        made, self._made = self._made, None
        if made is not None:
            with activate(self.ordinal):
                call("cuStreamDestroy", "destroy a stream", made)


def synchronize_stream(handle: int, ordinal: int) -> None:
    """Wait for the work on a stream (0: the legacy default stream of the device)."""
    with activate(ordinal) as state:
        call("cuStreamSynchronize", "finish the work on the stream", state.binding.CUstream(handle))


def order_after(later: int, earlier: int, ordinal: int) -> None:
    """Let work that is put into the stream `later` from now on wait for what is in the stream `earlier`."""
    event = Event(ordinal)
    try:
        event.record(earlier)
        with activate(ordinal) as state:
            call("cuStreamWaitEvent", "order two streams", state.binding.CUstream(later), event.handle, 0)
    finally:
        event.close()  # the driver keeps it until it was reached


class Event:
    """A point in a stream, with a time stamp."""

    __slots__ = ("_made", "ordinal")

    def __init__(self, ordinal: int = 0) -> None:
        self.ordinal = ordinal
        with activate(ordinal) as state:
            flag = int(state.binding.CUevent_flags.CU_EVENT_DEFAULT)
            self._made: Any = call("cuEventCreate", "make an event", flag)

    @property
    def handle(self) -> Any:
        """The CUevent; DriverError once it is closed."""
        if self._made is None:
            raise DriverError("the event was closed: make another")
        return self._made

    def record(self, stream: StreamLike = None) -> None:
        """Place it after the work that is in the stream now."""
        with activate(self.ordinal) as state:
            handle = state.binding.CUstream(stream_handle(stream))
            call("cuEventRecord", "record an event", self.handle, handle)

    def synchronize(self) -> None:
        """Wait until the device has reached it."""
        with activate(self.ordinal):
            call("cuEventSynchronize", "wait for an event", self.handle)

    def milliseconds_since(self, earlier: Event) -> float:
        """Device time between two events that were both reached, in milliseconds (0.5 µs resolution)."""
        with activate(self.ordinal):
            what = "read the time between two events"
            return float(call("cuEventElapsedTime", what, earlier.handle, self.handle))

    def close(self) -> None:
        """Destroy it. A second call does nothing."""
        made, self._made = self._made, None
        if made is not None:
            with activate(self.ordinal):
                call("cuEventDestroy", "destroy an event", made)
