"""A process that answers questions, and is ended when one takes too long."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import short, thread_limit

# A worker that waits for the processor, or for anything else, is ended after this many
# times the seconds that it may compute.
WALL_FACTOR = 6.0


class OverTimeError(Exception):
    """A question took more than its seconds."""


class FailedError(Exception):
    """A question ended in an error."""


class Worker:
    """A process that calls a function of a module.

    Parameters
    ----------
    function : callable
        What answers the questions, from its keyword arguments.
    most_seconds : float
        Processor time after which a question is given up.
    threads : int or None, default=1
        Largest number of threads of the numerical libraries.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        most_seconds: float,
        threads: int | None = 1,
    ) -> None:
        self._function, self._most_seconds = function, most_seconds
        self._threads = threads
        self._process: Any = None

    def ask(self, **question: Any) -> Any:
        """Return the answer, from a new process if there is none."""
        if self._process is None:
            self._start()
        self._pipe.send(question)
        start, start_cpu = time.monotonic(), cpu_seconds(self._process.pid)
        while not self._pipe.poll(0.5):
            taken = cpu_seconds(self._process.pid) - start_cpu
            waited = time.monotonic() - start
            if max(taken, waited / WALL_FACTOR) > self._most_seconds:
                self.close()
                raise OverTimeError
        try:
            kind, answer = self._pipe.recv()
        except EOFError:
            self.close()
            raise FailedError("its process died (out of memory?)") from None
        if kind == "error":
            raise FailedError(answer)
        return answer

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        with thread_limit(self._threads):
            self._process = context.Process(
                target=_serve, args=(theirs, self._function), daemon=True
            )
            self._process.start()
        theirs.close()
        self._pipe.recv()

    def close(self) -> None:
        """End the process."""
        if self._process is None:
            return
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._process = None


def _serve(pipe: Any, function: Callable[..., Any]) -> None:
    warnings.simplefilter("ignore")
    pipe.send("ready")
    while True:
        try:
            question = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            pipe.send(("answer", function(**question)))
        except Exception as error:
            pipe.send(("error", short(error)))


def cpu_seconds(pid: int) -> float:
    """Return the processor time of another process, where this is known."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
