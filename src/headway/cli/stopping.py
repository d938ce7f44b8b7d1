"""Ctrl-C and SIGTERM as a polite request: the step under way ends, the state is saved."""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130  # exit code
MESSAGE = b"\nstopping when the work under way is done ... (Ctrl-C again: at once)\n"


@contextmanager
def stop_requests(*, is_told: bool = True) -> Generator[Callable[[], bool]]:
    """Within the block SIGINT and SIGTERM only raise a flag; the function given tells whether one came.

    A second Ctrl-C interrupts at once; the last training state is whole in any case. ``is_told``: whether this process
    answers the user.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked = True
        if is_told:
            os.write(2, MESSAGE)  # a print here could meet a print under way

    earlier = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
