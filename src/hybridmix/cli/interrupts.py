"""Ctrl-C, from the first moment of a command to its last."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130

_was_pressed = False


@contextmanager
def noticing_interrupts() -> Iterator[None]:
    """Remember every Ctrl-C within this context, even if other code catches it.

    A fit that is interrupted returns the best model so far, and so does each fit within a
    report. The command must know about it: what it writes is not what was asked for.
    """
    global _was_pressed
    _was_pressed = False
    # Shells let commands in the background ignore Ctrl-C, and this must stay so.
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _on_press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def was_interrupted() -> bool:
    """Return whether Ctrl-C was pressed during this command."""
    return _was_pressed


def stop_if_interrupted() -> None:
    """Raise KeyboardInterrupt if other code has caught one before."""
    if _was_pressed:
        raise KeyboardInterrupt


@contextmanager
def ending_at_interrupt() -> Iterator[None]:
    """Leave this context at Ctrl-C, as the usual end of what it runs."""
    global _was_pressed
    try:
        yield
    except KeyboardInterrupt:
        _was_pressed = False


def _on_press(number: int, frame: FrameType | None) -> None:
    global _was_pressed
    _was_pressed = True
    signal.default_int_handler(number, frame)
