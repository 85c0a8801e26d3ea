"""Exploring from Python: start the page, show it, close it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybridmix.explorer.server import PageServer

# In a notebook, in pixels.
_HEIGHT = 900


class Explorer:
    """A page about a model, open until it is closed.

    Shows itself in notebooks; also a context manager.

    Parameters
    ----------
    server : PageServer
        What answers; it runs in a thread of its own.

    Attributes
    ----------
    url : str
        Where the page is: on this machine, with a token that is part of the address.
    """

    def __init__(self, server: PageServer) -> None:
        self.url = server.url
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return when the page is closed; scripts would end otherwise."""
        # Without a limit, Ctrl-C would not be noticed on Windows.
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop the server; the page can no longer ask anything."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "open" if self._thread.is_alive() else "closed"
        return f"Explorer({self.url!r}, {state})"

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="hybridmix explorer" src="{self.url}" width="100%" '
            f'height="{_HEIGHT}" style="border:0"></iframe>'
        )


def explore(model: Any, X: Any = None, y: Any = None, *, port: int = 0) -> Explorer:
    """Open a local page where you can try a fitted model.

    Pick a row or type one, hide and edit its cells, and watch class probabilities, the
    values that the model expects, how typical the row is and which cells are to blame.
    The page also shows densities of one or two columns, unusual rows, samples, predictive
    densities of regressors and the decoded states of sequences.

    The server listens on this machine only (127.0.0.1), and answers only requests that
    carry its token, which is part of the address. The page loads nothing from elsewhere.

    Parameters
    ----------
    model : estimator
        A fitted mixture or hidden Markov model of hybridmix, or a search among them.
    X : array-like or data frame of shape (n, d), or sequences, default=None
        Rows to pick from. Without them, some are drawn from the model.
    y : array-like of shape (n,) or (n, t), default=None
        Labels or targets of the rows, to compare with.
    port : int, default=0
        Port of the server; 0 for any that is free.

    Returns
    -------
    explorer : Explorer
        Shows itself in a notebook. Elsewhere, open its ``url`` in a browser; ``close()``
        stops the server, and ``wait()`` keeps a script from ending.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import hybridmix
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = hybridmix.HybridMixtureClassifier("likelihood").fit(X, y)
    >>> explorer = hybridmix.explore(model, X, y)
    >>> explorer.url
    'http://127.0.0.1:...'
    >>> explorer.close()
    """
    # Imported here, so that the library itself loads fast.
    from hybridmix._checks import check_number
    from hybridmix.explorer.questions import asking
    from hybridmix.explorer.server import PageServer
    from hybridmix.explorer.subject import Explored

    check_number("port", port, 0, 65535, whole=True)
    return Explorer(PageServer(asking(Explored.of(model, X, y)), port))
