"""How another thread ends the calls that search and score; torch is not needed."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import RLock

from headway.errors import CancelledError


class Cancel:
    """Set once, by any thread: the calls that were given this end with CancelledError, those to come at once."""

    def __init__(self) -> None:
        self._lock = RLock()  # a signal's handler may set what its own thread is about to hear of
        self._is_set = False
        self._listeners: dict[object, Callable[[], None]] = {}

    @property
    def is_set(self) -> bool:
        """Whether somebody has set it; there is no way back."""
        return self._is_set

    def set(self) -> None:
        """End the calls; each raises on its own thread, a fraction of a second later."""
        with self._lock:
            self._is_set = True
            for listener in list(self._listeners.values()):
                listener()

    def check(self) -> None:
        """Raise CancelledError if it is set."""
        if self._is_set:
            raise cancelled()

    @contextmanager
    def heard_by(self, listener: Callable[[], None]) -> Generator[None]:
        """Within the block ``listener`` is called when this is set, at the block's beginning where it is already."""
        key = object()
        with self._lock:
            self._listeners[key] = listener
            if self._is_set:
                listener()
        try:
            yield
        finally:
            with self._lock:
                del self._listeners[key]


def cancelled() -> CancelledError:
    """What a call ends with."""
    return CancelledError("search: the call was cancelled and gives nothing. Ask again with a Cancel that is not set.")
