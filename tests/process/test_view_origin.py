"""R4: the origin on which pages of sessions' ports are shown is not the app's, and gives out
nothing but the shell around them."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message

import pytest

from holdfast.relay.web_app import BUILT
from process.relaying import RelayProcess

PATIENCE_S = 20.0


@pytest.fixture(scope="module")
def relay() -> Iterator[RelayProcess]:
    with RelayProcess("--view-port", "0") as made:
        yield made


def get(url: str, method: str = "GET") -> tuple[int, bytes, Message]:
    request = urllib.request.Request(url, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.read(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(), error.headers


def view_of(relay: RelayProcess) -> str:
    status, body, _ = get(f"{relay.url}/view.json")
    assert status == 200
    port = json.loads(body)["port"]
    assert port not in (0, relay.port)
    return f"http://127.0.0.1:{port}"


def test_the_other_origin_gives_out_no_page_of_the_app_and_the_app_none_of_the_other(
    relay: RelayProcess,
) -> None:
    view = view_of(relay)
    for path in ("/", "/index.html", "/i", "/sw.js", "/v1/operator", "/metrics", "/view.json"):
        status, body, headers = get(view + path)
        assert status == 404, path
        assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert b"<script" not in body
    for name in ("shell.html", "sw.js", "shim.js"):
        assert get(f"{relay.url}/view/{name}")[0] == 404, name


def test_nobody_but_the_app_may_frame_the_shell(relay: RelayProcess) -> None:
    if not _built():
        pytest.skip("the web app is not built")
    status, _, headers = get(f"{view_of(relay)}/__hold/shell.html")
    assert status == 200
    policy = headers["Content-Security-Policy"]
    assert f"frame-ancestors http://127.0.0.1:{relay.port}" in policy
    assert "script-src 'self';" in policy and "unsafe" not in policy


def test_the_app_may_frame_the_other_origin_and_no_more(relay: RelayProcess) -> None:
    if not _built():
        pytest.skip("the web app is not built")
    policy = get(f"{relay.url}/")[2]["Content-Security-Policy"]
    assert re.findall(r"frame-src ([^;]+)", policy) == [view_of(relay)]
    with RelayProcess() as plain:
        assert "frame-src" not in get(f"{plain.url}/")[2]["Content-Security-Policy"]
        assert json.loads(get(f"{plain.url}/view.json")[1]) == {"port": 0}


def test_what_pages_left_behind_can_be_cleared_and_only_there(relay: RelayProcess) -> None:
    _, _, headers = get(f"{view_of(relay)}/__hold/clear", "POST")
    assert headers["Clear-Site-Data"] == '"cache", "storage"'
    assert get(f"{relay.url}/__hold/clear", "POST")[2].get("Clear-Site-Data") is None


def test_a_page_of_the_other_origin_cannot_dial_the_relay(relay: RelayProcess) -> None:
    request = urllib.request.Request(
        f"{relay.url}/v1/operator",
        headers={
            "Origin": view_of(relay), "Connection": "Upgrade", "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        },
    )  # fmt: skip
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=PATIENCE_S)
    assert refused.value.code == 403
    refused.value.close()


def _built() -> bool:
    return os.path.isfile(f"{BUILT}/view/shell.html")
