"""The web app in a real browser, against `hold attach` through the same relay.

One host is at a relay on loopback; a command line and a browser have joined it. Timed: a session's
first screen, from the click on its card, against a whole `hold attach` from its start; the echo of
a key, from the browser's event until the terminal has taken what came back, against the same key in
`hold attach` (both without drawing: neither knows when light leaves a screen; the frame after it is
given too); the longest the page stood still while 50 MB came; and what a browser loads."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import pages
from bench.content import ask, script, until_attached
from bench.far import Far, far_host
from bench.measure_echo import BLOCK, HINT_GONE_S, TIMEOUT_S, type_block
from bench.results import Row, Target
from bench.sampling import interleaved, percentile
from bench.stage import Stage
from bench.terminal import Terminal
from holdfast.wire.messages import turn as turn_messages

if TYPE_CHECKING:
    from playwright.sync_api import Page

_FLOOD_BLOCKS = 50  # of 1 MB
_FLOOD_TIMEOUT_S = 180.0
_KEYS = "#&!~%"
_PAUSE_S = 0.003
_CLI = "hold attach"
_FIRST = "first-line"


def measure(stage: Stage) -> list[Row]:
    if why := pages.absent():
        return _rows({}, why)
    taken = {"bundle": _bundle()}
    with far_host(stage) as far, pages.joined(far.link()) as page:
        taken |= _first_screen(stage, far, page)
        taken |= _keys(stage, far, page)
        taken |= _flood(stage, far, page)
    return _rows(taken)


def _rows(taken: dict[str, float], note: str = "") -> list[Row]:
    def row(name: str, unit: str, of: str, target: Target | None, against: str = "") -> Row:
        return Row(
            f"web: {name}", unit, {"holdfast": taken[of]} if of in taken else {},
            _CLI if against else "", baseline=taken.get(against), target=target, note=note,
        )  # fmt: skip

    return [
        row("first screen", "ms", "screen", Target("<=", 3), "cli screen"),
        row("key echo, p50", "ms", "key", Target("<=", 2), "cli key"),
        row("key echo until the frame after it, p50", "ms", "drawn", None, "cli key"),
        row(f"longest task during {_FLOOD_BLOCKS} MB", "ms", "longest", Target("<", 200, "value")),
        row("of that, as far as it had a CPU", "ms", "cpu", None),
        row("what is loaded, gzip", "kB", "bundle", Target("<=", 500, "value")),
    ]


def _bundle() -> float:
    """All of it, also what is loaded only when it is needed; pictures have no packed form."""
    files = [path for path in Path(pages.BUILT).rglob("*") if path.is_file()]
    packed = {path for path in files if path.suffix == ".gz"}
    plain = [path for path in files if path not in packed and not path.name.startswith(".")]
    sizes = [
        (zipped if (zipped := path.with_name(f"{path.name}.gz")) in packed else path).stat().st_size
        for path in plain
    ]
    return sum(sizes) / 1000


def _first_screen(stage: Stage, far: Far, page: Page) -> dict[str, float]:
    far.start("first", ["/bin/sh", "-c", f"echo {_FIRST}; exec cat"])

    def browser() -> float:
        took = pages.open_session(page, "first", _FIRST)
        pages.leave_session(page)
        return took

    def command_line() -> float:
        began = time.perf_counter()
        with Terminal([far.program, "attach", "far/first"], far.client_env) as terminal:
            terminal.wait_for(_FIRST.encode(), TIMEOUT_S)
            return (time.perf_counter() - began) * 1000

    actions = {"screen": browser, "cli screen": command_line}
    samples = interleaved(actions, stage.scale.attach_repetitions)
    return {name: percentile(taken, 50) for name, taken in samples.items()}


def _keys(stage: Stage, far: Far, page: Page) -> dict[str, float]:
    """Each in a session of its own, since only who holds the turn types."""
    for name in ("web-keys", "cli-keys"):
        far.start(name, script(far.pid_file(name), stage.block_file()))
    with Terminal([far.program, "attach", "far/cli-keys"], far.client_env) as terminal:
        until_attached(terminal)
        ask(terminal, "keys", TIMEOUT_S)
        time.sleep(HINT_GONE_S)
        terminal.discard(0.1)
        _into_keys(far, page)
        command_line: list[float] = []

        def browser() -> float:
            for number in range(BLOCK):
                time.sleep(_PAUSE_S)
                pages.press(page, _KEYS[number % len(_KEYS)], TIMEOUT_S)
            return 0.0

        def typed() -> float:
            return type_block(terminal, command_line)

        interleaved({"web": browser, "cli": typed}, stage.scale.keys // BLOCK, warm_up=0)
    taken = pages.pressed(page)
    pages.leave_session(page)
    skipped = BLOCK // 2  # warm-up
    return {
        "key": percentile(taken["parsed"][skipped:], 50),
        "drawn": percentile(taken["drawn"][skipped:], 50),
        "cli key": percentile(command_line[skipped:], 50),
    }


def _into_keys(far: Far, page: Page) -> None:
    """The session of the browser echoes keys, and the browser holds its turn."""
    with far.host() as host:
        host.send("web-keys", "keys 1")
        host.ask(turn_messages.YieldTurn(0, "web-keys"), turn_messages.TurnShown)
    pages.open_session(page, "web-keys", "<1-END>")
    pages.listen(page)


def _flood(stage: Stage, far: Far, page: Page) -> dict[str, float]:
    far.start("flood", script(far.pid_file("flood"), stage.block_file()))
    with far.host() as host:
        host.send("flood", "ping 1")
        pages.open_session(page, "flood", "<1-END>")
        with pages.tasks_of(page) as tasks:
            for number in range(2, _FLOOD_BLOCKS + 2):
                host.send("flood", f"cat {number}")
            pages.until_shown(page, f"<{_FLOOD_BLOCKS + 1}-END>", _FLOOD_TIMEOUT_S)
    pages.leave_session(page)
    return {"longest": tasks.longest, "cpu": tasks.longest_cpu}
