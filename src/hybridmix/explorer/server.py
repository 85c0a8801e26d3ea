"""A server on this machine alone, for the page and its questions."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from hybridmix._text import json_safe, printable
from hybridmix.explorer.plain import plain

HOST = "127.0.0.1"
# Questions are a row or a sequence; nothing that is asked is longer than this.
_MOST_BYTES = 4_000_000
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
# The page loads its own files and asks its own server; the policy makes sure of it,
# whatever a table holds.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

Ask = Callable[[str, dict[str, Any]], dict[str, Any]]


class RequestError(Exception):
    """A request that is refused, with the status that says so."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class PageServer(ThreadingHTTPServer):
    """Serves the page at ``/TOKEN/``, and answers at ``/TOKEN/ask/NAME``.

    The token is part of the path, so that scripts and styles carry it as well. It is new
    for every server and cannot be guessed: other programs and pages on this machine know
    the port, but not the path.

    Parameters
    ----------
    ask : callable
        Answers questions: from their name and their content, both plain values.
    port : int, default=0
        Port to listen on; 0 for any that is free.
    """

    daemon_threads = True

    def __init__(self, ask: Ask, port: int = 0) -> None:
        self.ask = ask
        self.is_closed = False
        self.token = secrets.token_urlsafe(24)
        super().__init__((HOST, port), _Handler)

    def server_close(self) -> None:
        """Refuse whatever is still asked, on connections that are open already."""
        self.is_closed = True
        super().server_close()

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_port}/{self.token}/"

    @property
    def names(self) -> tuple[str, str]:
        """What requests may call this server; others were led here by another name."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes: the second would wait for the first to be confirmed.
    disable_nagle_algorithm = True
    # Connections that are not used end after this many seconds, and their threads.
    timeout = 60.0
    server: PageServer

    def do_GET(self) -> None:
        """Send a file of the page."""
        self._respond(self._file)

    def do_POST(self) -> None:
        """Answer a question."""
        self._respond(self._answer)

    def _respond(self, make: Callable[[str], tuple[str, bytes]]) -> None:
        status = HTTPStatus.OK
        try:
            kind, body = make(self._path())
        except RequestError as error:
            status, message = error.status, str(error)
        except ValueError as error:
            status, message = HTTPStatus.BAD_REQUEST, str(error)
        except Exception as error:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            message = f"Unexpected {type(error).__name__}: {error}"
        if status != HTTPStatus.OK:
            # What was sent may not have been read, and would look like a new request.
            self.close_connection = True
            kind, body = _as_json({"error": printable(message)})
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _path(self) -> str:
        """Return the path behind the token, which must be there."""
        if self.server.is_closed:
            raise RequestError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "The explorer was closed: run explore again, and open its new address.",
            )
        if self.headers.get("Host") not in self.server.names:
            raise RequestError(
                HTTPStatus.FORBIDDEN, f"This server is http://{self.server.names[0]}."
            )
        token, _, path = self.path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise RequestError(
                HTTPStatus.FORBIDDEN,
                "The token is missing or wrong: open the address that explore printed.",
            )
        return path

    def _file(self, path: str) -> tuple[str, bytes]:
        name = path or "index.html"
        suffix = name[name.rfind(".") :]
        file = files("hybridmix.explorer") / "page" / name
        if "/" in name or "\\" in name or suffix not in _TYPES or not file.is_file():
            raise RequestError(HTTPStatus.NOT_FOUND, f"There is no page {name!r}.")
        return _TYPES[suffix], file.read_bytes()

    def _answer(self, path: str) -> tuple[str, bytes]:
        folder, _, name = path.partition("/")
        if folder != "ask":
            raise RequestError(HTTPStatus.NOT_FOUND, f"Nothing is asked at {path!r}.")
        return _as_json(self.server.ask(name, self._question()))

    def _question(self) -> dict[str, Any]:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            raise RequestError(
                HTTPStatus.LENGTH_REQUIRED, "The length of the question is missing."
            ) from None
        if not 0 <= length <= _MOST_BYTES:
            raise RequestError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"A question has at most {_MOST_BYTES:,} bytes, not {length:,}.",
            )
        try:
            question = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            raise ValueError("The question is not valid JSON.") from None
        if not isinstance(question, dict):
            raise ValueError("The question must be a JSON object.")
        return question

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the page shows errors itself."""


def _as_json(value: dict[str, Any]) -> tuple[str, bytes]:
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    return "application/json; charset=utf-8", json_safe(text).encode()
