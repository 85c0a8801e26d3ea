"""The server of the explorer: on this machine only, with a token, and clear errors."""

import http.client
import json
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import numpy as np
import pytest
from helpers import plain_classifier
from sklearn.datasets import load_iris

import hybridmix
from hybridmix.explorer import explore
from hybridmix.explorer.server import HOST


@pytest.fixture(scope="module")
def model():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return plain_classifier("likelihood").fit(X, y)


@pytest.fixture(scope="module")
def explorer(model):
    X, y = load_iris(return_X_y=True, as_frame=True)
    with explore(model, X, y) as opened:
        yield opened


def request(explorer, path, body=None, token=None, **headers):
    """Send a request; return status, headers and content."""
    [(port, own)] = re.findall(r":(\d+)/(.+)/$", explorer.url)
    connection = http.client.HTTPConnection(HOST, int(port), timeout=10)
    method = "GET" if body is None else "POST"
    try:
        connection.request(
            method, f"/{own if token is None else token}/{path}", body, headers
        )
        response = connection.getresponse()
        return response.status, dict(response.headers), response.read()
    finally:
        connection.close()


def ask(explorer, name, question):
    status, _, content = request(explorer, f"ask/{name}", json.dumps(question))
    return status, json.loads(content)


def test_page_and_its_files(explorer):
    status, headers, content = request(explorer, "")
    assert status == 200
    assert headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    page = content.decode()
    assert not re.search(r"https?://", page)
    for name in re.findall(r'(?:src|href)="([\w.]+)"', page):
        assert request(explorer, name)[0] == 200
    status, _, script = request(explorer, "main.js")
    for name in re.findall(r'from "\./([\w.]+)"', script.decode()):
        assert request(explorer, name)[0] == 200


def test_answers(explorer, model):
    status, about = ask(explorer, "describe", {})
    assert status == 200
    assert about["classes"] == ["0", "1", "2"]
    status, answer = ask(explorer, "answer", {"cells": [5.0, None, 1.5, 0.2]})
    row = [[5.0, np.nan, 1.5, 0.2]]
    names = model.feature_names_in_
    import pandas as pd

    wanted = model.predict_proba(pd.DataFrame(row, columns=names))[0]
    np.testing.assert_allclose(
        answer["prediction"]["probabilities"], wanted, rtol=1e-4, atol=1e-12
    )


@pytest.mark.parametrize("token", ["", "wrong", "%C3%A9"])
@pytest.mark.parametrize("body", [None, "{}"])
def test_token(explorer, token, body):
    path = "ask/describe" if body else "main.js"
    status, _, content = request(explorer, path, body, token=token)
    assert status == 403
    assert "token is missing or wrong" in json.loads(content)["error"]


def test_tokens_are_new(explorer, model):
    with explore(model) as other:
        tokens = [opened.url.split("/")[3] for opened in (explorer, other)]
    assert tokens[0] != tokens[1]
    assert all(len(token) >= 32 for token in tokens)


def test_other_names_of_the_server(explorer):
    status, _, content = request(explorer, "", Host="example.org")
    assert status == 403
    assert "This server is http://127.0.0.1" in json.loads(content)["error"]


def test_only_this_machine(explorer):
    assert explorer.url.startswith("http://127.0.0.1:")
    assert explorer._server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("nothing.js", None, 404, "There is no page 'nothing.js'"),
        ("../server.py", None, 404, "There is no page"),
        ("..%2fserver.py", None, 404, "There is no page"),
        ("ask/describe", None, 404, "There is no page"),
        ("main.js", "{}", 404, "Nothing is asked at 'main.js'"),
        ("ask/nothing", "{}", 400, "There is no question 'nothing'"),
        ("ask/row", "{", 400, "not valid JSON"),
        ("ask/row", "[" * 100_000, 400, "not valid JSON"),
        ("ask/row", "[]", 400, "must be a JSON object"),
        ("ask/row", '{"row": 999}', 400, "'row' must be a whole number from 0 to 149"),
        ("ask/answer", '{"cells": [NaN, 1, 1, 1]}', 400, "'sepal length (cm)' holds"),
    ],
)
def test_bad_requests(explorer, path, body, status, message):
    found, headers, content = request(explorer, path, body)
    assert found == status
    assert headers["Content-Type"].startswith("application/json")
    assert message in json.loads(content)["error"]


def test_large_questions(explorer):
    status, _, content = request(
        explorer, "ask/row", "{}", **{"Content-Length": "99999999999"}
    )
    assert status == 413
    assert "at most" in json.loads(content)["error"]


def test_unexpected_errors(model):
    with explore(model) as opened:

        def fail(name, question):
            raise RuntimeError("out of luck\x1b[31m")

        opened._server.ask = fail
        status, answer = ask(opened, "row", {"row": 0})
    assert status == 500
    assert answer["error"] == r"Unexpected RuntimeError: out of luck\x1b[31m"


def test_closing(model):
    opened = explore(model)
    assert opened.url in opened._repr_html_()
    assert repr(opened).endswith("open)")
    opened.close()
    opened.close()
    assert repr(opened).endswith("closed)")
    opened.wait()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(opened.url, timeout=5)


def test_port(model):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port = taken.getsockname()[1]
    with explore(model, port=port) as opened:
        assert f":{port}/" in opened.url
    with pytest.raises(ValueError, match="port"):
        explore(model, port=70_000)


# The command line -----------------------------------------------------------------------


def test_command(model, tmp_path):
    pytest.importorskip("typer")
    hybridmix.save(model, tmp_path / "model.hmx")
    X, y = load_iris(return_X_y=True, as_frame=True)
    X.assign(kind=y).to_csv(tmp_path / "iris.csv", index=False)
    command = [sys.executable, "-m", "hybridmix", "explore", "model.hmx", "iris.csv"]
    with subprocess.Popen(
        [*command, "--target", "kind", "--no-browser"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(url, timeout=10) as response:
            assert b"hybridmix explorer" in response.read()
        question = urllib.request.Request(f"{url}ask/row", b'{"row": 60}')
        with urllib.request.urlopen(question, timeout=10) as response:
            assert json.load(response)["label"] == 1
        process.terminate()


def test_command_without_a_table(model, shell):
    pytest.importorskip("typer")
    hybridmix.save(model, "model.hmx")
    line = shell.fail("explore", "model.hmx", "--target", "kind")
    assert "--target is for a table: add TABLE." in line
