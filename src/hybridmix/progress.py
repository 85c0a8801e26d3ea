"""Progress of long work, for callers that listen.

Fits, searches and reports announce their steps. Nobody hears them without a listener:

>>> from sklearn.datasets import load_iris
>>> from hybridmix import HybridMixtureClassifier
>>> from hybridmix.progress import listening
>>> steps = []
>>> with listening(steps.append):
...     model = HybridMixtureClassifier().fit(*load_iris(return_X_y=True))
>>> [step.task for step in steps][:2]
['search', 'search']

The option ``verbose`` of the estimators is a listener that prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Step(NamedTuple):
    """A step of long work.

    Attributes
    ----------
    task : str
        What is being done.
    done, total : int
        How many steps of it are done, and how many there are at most: solvers may stop
        before.
    note : str
        What can be said of the step, such as the value that was reached.
    """

    task: str
    done: int
    total: int
    note: str = ""


Listener = Callable[[Step], None]
# A listener belongs to the caller, not to the estimator, which is cloned and saved.
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)
# A verbose estimator prints one step out of this many.
_PRINTED = 10


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Call a function with every `Step` that is announced within this context.

    Parameters
    ----------
    listener : callable or None
        Takes a `Step`; None for silence within the context of another listener.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def printing(verbose: int) -> Iterator[None]:
    """Print every tenth step and the last one, besides what is done already.

    Parameters
    ----------
    verbose : int
        0 changes nothing.
    """
    if not verbose:
        yield
        return
    outer = _listener.get()

    def listener(step: Step) -> None:
        if step.done % _PRINTED == 0 or step.done == step.total:
            note = f"  {step.note}" if step.note else ""
            print(f"{step.task} {step.done}/{step.total}{note}", flush=True)
        if outer is not None:
            outer(step)

    with listening(listener):
        yield


def announce(task: str, done: int, total: int, note: str = "") -> None:
    """Send a step to the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(Step(task, done, total, note))
