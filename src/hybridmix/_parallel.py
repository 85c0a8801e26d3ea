"""Threads over chunks, with BLAS held to one thread each.

BLAS limits belong to the process, so overlapping limits would restore each other's
values in the wrong order. One reference-counted limit avoids that: the first user lowers
it and the last one restores it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from multiprocessing import resource_tracker
from typing import Any, TypeVar

import joblib
from threadpoolctl import ThreadpoolController

from hybridmix._scratch import release

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextmanager
def deaf_processes(n_jobs: int | None) -> Iterator[None]:
    """Let processes that are started within this context never hear Ctrl-C.

    A terminal sends Ctrl-C to all processes of a command. The one that has started the
    others ends them, and each of these would print a traceback first. A signal that is
    blocked stays so in new processes from their first moment; this process gets it at the
    end of the context.

    Parameters
    ----------
    n_jobs : int or None
        Number of processes, as in joblib; if it is one, none is started.
    """
    has_masks = hasattr(signal, "pthread_sigmask")  # Windows has none
    if not has_masks or joblib.effective_n_jobs(n_jobs) == 1:
        yield
        return
    # Processes begin by starting these two; some versions then unblock the signal.
    resource_tracker.ensure_running()
    with suppress(ImportError):
        from joblib.externals.loky.backend import resource_tracker as of_joblib

        of_joblib.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@cache
def _controller() -> ThreadpoolController:
    # Finding the loaded libraries costs about a millisecond, so it is done once.
    return ThreadpoolController()


def _threads_allowed_now() -> int:
    """Return the number of threads that the numerical libraries may use at present."""
    limits = [
        library.num_threads
        for library in _controller().lib_controllers
        if library.user_api == "blas" and library.num_threads
    ]
    return max(1, min([joblib.cpu_count(), *limits]))


class _SharedLimit:
    """Hold the numerical libraries to one thread while anybody needs it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: AbstractContextManager[Any] | None = None
        self._threads_before = 1

    @contextmanager
    def held(self) -> Iterator[int]:
        """Hold the limit; yield how many threads were allowed before it."""
        with self._lock:
            if self._users == 0:
                self._threads_before = _threads_allowed_now()
                self._limit = _controller().limit(limits=1)
                self._limit.__enter__()
            self._users += 1
            threads = self._threads_before
        try:
            yield threads
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._limit is not None:
                    self._limit.__exit__(None, None, None)
                    self._limit = None


_ONE_THREAD_EACH = _SharedLimit()


class Workers:
    """Run a function over tasks, in order, on a number of threads.

    Parameters
    ----------
    n_threads : int
        One means that everything runs in the calling thread.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def __reduce__(self) -> tuple[type[Workers], tuple[int]]:
        # Threads stay here: what is sent elsewhere runs in the thread that calls it.
        return Workers, (1,)

    def map(
        self, function: Callable[[Item], Result], tasks: Sequence[Item]
    ) -> Iterator[Result]:
        """Yield ``function(task)`` for every task, in the order of the tasks."""
        if self._pool is None or len(tasks) < 2:
            return map(function, tasks)
        return self._pool.map(function, tasks)

    def close(self) -> None:
        """End the threads; tasks that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def workers(n_jobs: int | None = None) -> Iterator[Workers]:
    """Provide workers for the time of a fit or a prediction.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads; None takes as many as BLAS may use at the moment (all cores,
        unless an environment variable, ``threadpoolctl`` or an outer parallel loop says
        less), -1 all cores, -2 all but one.
    """
    with _ONE_THREAD_EACH.held() as allowed:
        threads = allowed if n_jobs is None else joblib.effective_n_jobs(n_jobs)
        pool = Workers(threads)
        try:
            yield pool
        finally:
            pool.close()
            release()
