"""The web app as a relay gives it out: which answer there is at which address, with which headers,
and which pages may dial. What the page then does is shown in a browser, in tests/e2e."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from holdfast.relay.web_app import WebApp
from process.relaying import PATIENCE_S, RelayProcess, bounded

INDEX = b"<!doctype html><title>holdfast</title>" + b"<p>the page</p>" * 40
SCRIPT = b"export const answer = 42\n" * 40
WORKER = b"self.addEventListener('fetch', () => {})\n" * 10


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A build as scripts/web-build leaves one, with files around it that are nobody's business."""
    (tmp_path / "secret.txt").write_text("beside the build")
    made = tmp_path / "web"
    (made / "assets").mkdir(parents=True)
    for name, body in (
        ("index.html", INDEX),
        ("assets/app-abc123.js", SCRIPT),
        ("sw.js", WORKER),
    ):
        (made / name).write_bytes(body)
        (made / f"{name}.gz").write_bytes(gzip.compress(body))
    (made / "icon.png").write_bytes(b"\x89PNG")
    (made / ".source").write_text("a hash")
    (made / "notes.exe").write_text("of no kind we know")
    return made


@asynccontextmanager
async def served(build: Path) -> AsyncIterator[aiohttp.ClientSession]:
    app = web.Application()
    WebApp(str(build)).route(app)
    server = TestServer(app)
    await server.start_server()
    try:
        async with aiohttp.ClientSession(
            str(server.make_url("/")), auto_decompress=False, headers={"Accept-Encoding": ""}
        ) as http:
            yield http
    finally:
        await server.close()


def play(build: Path, scene: Callable[[aiohttp.ClientSession], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with served(build) as http:
            await scene(http)

    bounded(whole())


@pytest.mark.parametrize("address", ["/", "/i", "/m/box/s/main", "/m/a%20b/s/..%2F..%2Fx"])
def test_every_address_of_the_app_is_the_one_page(build: Path, address: str) -> None:
    async def scene(http: aiohttp.ClientSession) -> None:
        async with http.get(address) as answer:
            assert (answer.status, await answer.read()) == (200, INDEX)
            assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
            assert answer.headers["Cache-Control"] == "no-cache"

    play(build, scene)


def test_what_is_named_by_its_hash_is_kept_for_ever_and_the_rest_is_asked_for_again(
    build: Path,
) -> None:
    async def scene(http: aiohttp.ClientSession) -> None:
        for name, body, kind, kept in (
            ("/assets/app-abc123.js", SCRIPT, "text/javascript; charset=utf-8", "immutable"),
            ("/sw.js", WORKER, "text/javascript; charset=utf-8", "no-cache"),
            ("/icon.png", b"\x89PNG", "image/png", "no-cache"),
        ):
            async with http.get(name) as answer:
                assert (answer.status, await answer.read()) == (200, body)
                assert answer.headers["Content-Type"] == kind
                assert kept in answer.headers["Cache-Control"]

    play(build, scene)


def test_a_page_is_kept_to_itself_by_its_headers(build: Path) -> None:
    async def scene(http: aiohttp.ClientSession) -> None:
        for address in ("/", "/i", "/assets/app-abc123.js", "/nothing"):
            async with http.get(address) as answer:
                policy = dict(
                    part.strip().split(" ", 1)
                    for part in answer.headers["Content-Security-Policy"].split(";")
                )
                assert policy["default-src"] == "'none'"
                assert policy["script-src"] == policy["connect-src"] == "'self'"
                assert policy["worker-src"] == policy["manifest-src"] == "'self'"
                assert {
                    policy[name] for name in ("frame-ancestors", "base-uri", "form-action")
                } == {"'none'"}
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Referrer-Policy"] == "no-referrer"
                assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"

    play(build, scene)


def test_a_header_that_browsers_complain_of_without_tls_is_left_out_there(build: Path) -> None:
    async def scene(http: aiohttp.ClientSession) -> None:
        for said, sent in (
            ({"Host": "192.168.1.5:7420"}, False),
            ({"Host": "127.evil.example"}, False),
            ({"Host": "[::1]:7420"}, True),
            ({"Host": "localhost"}, True),
            ({"Host": "relay.example", "X-Forwarded-Proto": "https"}, True),
        ):
            async with http.get("/", headers=said) as answer:
                assert ("Cross-Origin-Opener-Policy" in answer.headers) is sent, said

    play(build, scene)


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("gzip, deflate, br", True),
        ("br;q=1.0, GZIP;q=0.5", True),
        ("", False),
        ("br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0", False),
    ],
)
def test_it_comes_packed_to_who_can_unpack_it(build: Path, accepted: str, zipped: bool) -> None:
    async def scene(http: aiohttp.ClientSession) -> None:
        async with http.get("/", headers={"Accept-Encoding": accepted}) as answer:
            body = await answer.read()
            assert answer.headers.get("Content-Encoding") == ("gzip" if zipped else None)
            assert (gzip.decompress(body) if zipped else body) == INDEX
            assert answer.headers["Vary"] == "Accept-Encoding"

    play(build, scene)


def test_a_packed_form_that_is_of_another_file_is_not_given_out(build: Path) -> None:
    (build / "index.html.gz").write_bytes(gzip.compress(b"an older page"))
    (build / "sw.js.gz").write_bytes(b"\x1f\x8b not gzip at all")

    async def scene(http: aiohttp.ClientSession) -> None:
        for address, body in (("/", INDEX), ("/sw.js", WORKER)):
            async with http.get(address, headers={"Accept-Encoding": "gzip"}) as answer:
                assert await answer.read() == body

    play(build, scene)


def test_what_the_browser_has_already_is_not_sent_again(build: Path) -> None:
    async def scene(http: aiohttp.ClientSession) -> None:
        for accepted in ("gzip", ""):
            headers = {"Accept-Encoding": accepted}
            async with http.get("/", headers=headers) as answer:
                tag = answer.headers["ETag"]
            for asked in (tag, f'"other", {tag}', f"W/{tag}"):
                async with http.get("/", headers={**headers, "If-None-Match": asked}) as answer:
                    assert (answer.status, await answer.read()) == (304, b"")
                    assert answer.headers["ETag"] == tag
                    assert "Content-Security-Policy" in answer.headers
            async with http.get("/", headers={**headers, "If-None-Match": '"other"'}) as answer:
                assert answer.status == 200

    play(build, scene)


def test_a_head_is_the_same_without_a_body(build: Path) -> None:
    async def scene(http: aiohttp.ClientSession) -> None:
        async with http.head("/") as answer:
            assert (answer.status, await answer.read()) == (200, b"")
            assert answer.headers["Content-Length"] == str(len(INDEX))

    play(build, scene)


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/%2e%2e%5c%2e%2e%5csecret.txt",
        "//secret.txt",
        "/.source",
        "/notes.exe",
        "/index.html.gz",
        "/assets/",
        "/assets",
        "/index.html%00.js",
        "/v1/other",
    ],
)
def test_nothing_but_the_files_of_the_build_can_be_had(build: Path, path: str) -> None:
    """Sent as it stands: a client that tidies paths up would prove nothing."""

    async def scene(http: aiohttp.ClientSession) -> None:
        place = http._base_url
        assert place is not None and place.host and place.port
        reader, writer = await asyncio.open_connection(place.host, place.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await asyncio.wait_for(reader.read(), PATIENCE_S)).partition(b"\r\n\r\n")
        writer.close()
        assert re.match(rb"HTTP/1.1 40[04] ", head), head
        assert b"beside the build" not in body and b"a hash" not in body

    play(build, scene)


def test_a_relay_without_a_build_says_so_and_has_one_as_soon_as_it_is_made(build: Path) -> None:
    away = build.with_name("away")
    build.rename(away)

    async def scene(http: aiohttp.ClientSession) -> None:
        async with http.get("/i") as answer:
            assert answer.status == 503
            assert "scripts/web-build" in await answer.text()
            assert "Content-Security-Policy" in answer.headers
        away.rename(build)
        async with http.get("/i") as answer:
            assert await answer.read() == INDEX

    play(build, scene)


# -- with a real relay ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def relay() -> Iterator[RelayProcess]:
    with RelayProcess("--name", "relay.example:443") as made:
        yield made


@pytest.mark.parametrize("path", ["/v1/operator", "/v1/host"])
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("OWN", 101),
        ("https://relay.example", 101),
        ("https://relay.example:443", 101),
        ("http://relay.example", 403),
        ("https://evil.example", 403),
        ("http://127.0.0.1", 403),
        ("http://127.0.0.1:1", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
    ],
)
def test_only_a_page_of_this_relay_may_dial_it(
    relay: RelayProcess, path: str, origin: str | None, status: int
) -> None:
    """A program that is no browser says no origin."""
    said = relay.url if origin == "OWN" else origin
    headers = [
        f"GET {path} HTTP/1.1",
        f"Host: {relay.name}",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
        *([] if said is None else [f"Origin: {said}"]),
    ]
    with socket.create_connection(("127.0.0.1", relay.port), PATIENCE_S) as dialled:
        dialled.sendall("\r\n".join([*headers, "", ""]).encode())
        line = dialled.makefile("rb").readline().decode()
    assert line.split()[1] == str(status), line


async def test_a_real_relay_answers_at_the_addresses_of_links(relay: RelayProcess) -> None:
    """With a build or without one: this is about the way there."""

    for address in ("/", "/i", "/m/box/s/main"):
        status, text = await relay.get(address)
        assert status in (200, 503) and "holdfast" in text
    assert await relay.get("/healthz") == (200, "ok\n")
    assert (await relay.get("/v1/nothing"))[0] == 404
