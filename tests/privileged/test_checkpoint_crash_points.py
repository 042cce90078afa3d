"""The daemon dies between any two steps of a checkpoint or a restore: there is one session, alive
or asleep, and what was typed ahead reaches its program once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.crash_points import arm, crashing_host, customized_host
from faults.hosting import HOLD, FaultHost, environments
from holdfast.model.state import Level, SessionState
from holdfast.sdk.client import Host
from privileged.checkpointing import skip_unless_possible
from process.waiting import until

CHECKPOINTING = [
    "before-put_unread",
    "after-put_unread",
    "before-image_saved",
    "after-image_saved",
    "before-answered",
    "after-answered",
]
ENDING = ["before-bury", "after-bury", "before-release", "after-release"]
RESTORING = [
    "before-facts",
    "after-token",
    "after-asked_launcher",
    "before-launch",
    "after-launch",
    "after-recovered",
    "before-deposit",
    "after-deposit",
    "after-rise",
    "before-save_spec",
    "before-thaw",
    "after-thaw",
]
_TYPED = "typed ahead"


@pytest.fixture(scope="module")
def armed_host() -> Iterator[FaultHost]:
    skip_unless_possible()
    with crashing_host() as host:
        yield host.up()


@pytest.mark.requirement("M2", "A9", "F1")
@pytest.mark.parametrize("ends", [False, True], ids=["goes-on", "ends"])
@pytest.mark.parametrize("point", CHECKPOINTING)
def test_a_checkpoint_cut_off_by_a_kill_leaves_one_session(
    armed_host: FaultHost, point: str, ends: bool
) -> None:
    _Typed(armed_host, f"{point}-{ends}").crosses(
        point, "checkpoint", *(("--end",) if ends else ())
    )


@pytest.mark.requirement("M2", "A9", "F1")
@pytest.mark.parametrize("point", ENDING)
def test_an_end_with_a_checkpoint_cut_off_by_a_kill_leaves_it_asleep(
    armed_host: FaultHost, point: str
) -> None:
    _Typed(armed_host, point).crosses(point, "checkpoint", "--end")


@pytest.mark.requirement("M2", "A9", "F1")
@pytest.mark.parametrize("point", RESTORING)
def test_a_restore_cut_off_by_a_kill_leaves_one_session(armed_host: FaultHost, point: str) -> None:
    typed = _Typed(armed_host, point)
    done = armed_host.hold("checkpoint", typed.session, "--end")
    assert done.returncode == 0, done
    typed.crosses(point, "restore")


@pytest.mark.requirement("M9")
@pytest.mark.parametrize("point", ["before-bury", "after-bury", "after-release"])
def test_an_eviction_cut_off_by_a_kill_still_wakes_on_use(point: str) -> None:
    skip_unless_possible()
    host = crashing_host()
    Path(host.home, "config.toml").write_text("idle_movable_s = 1\nidle_warning_s = 3600\n")
    try:
        host.up()
        assert host.hold("run", "-d", "--name", "idle", "--", "bash", "--norc").returncode == 0
        assert host.hold("wait", "idle", "--for", "prompt", "--timeout", "20").returncode == 0
        until("it is due", lambda: '"evict"' in host.hold("reap", "--dry-run", "--json").stdout)
        armed, before = arm(host, point), until("there is a daemon", host.daemon_pid)
        host.hold("reap")
        assert not armed.exists(), "it did not come by there"
        host.wait_new_daemon(before)
        until("it is asleep", lambda: "asleep" in host.hold("ls").stdout)
        done = host.hold("exec", "idle", "--", "echo awake")
        assert done.stdout.strip() == "awake", done.stderr + host.log()[-3000:]
    finally:
        host.down()


@pytest.mark.requirement("M2")
def test_a_shutdown_cut_off_by_a_kill_still_brings_its_sessions_back(armed_host: FaultHost) -> None:
    done = armed_host.hold("run", "-d", "--name", "returns", "--", "bash", "--norc")
    session = done.stdout.strip()
    armed, before = arm(armed_host, "after-bury"), until("a daemon", armed_host.daemon_pid)
    armed_host.hold("down", "--checkpoint")
    assert not armed.exists(), "it did not come by there"
    armed_host.wait_new_daemon(before)
    until("it is asleep", lambda: "asleep" in armed_host.hold("show", session).stdout)
    assert armed_host.hold("daemon", "restart").returncode == 0
    until("it is back", lambda: '"epoch": 2' in armed_host.hold("show", session, "--json").stdout)
    assert armed_host.hold("end", session).returncode == 0


# At CRIU's last question, when the checkpoint is stored, the daemon stands still.
_STANDS_STILL = """
import os, time
from holdfast.adapters.criu import swrk
from holdfast.host.continuity.checkpoint_book import CheckpointBook
stored = []
def saved(self, checkpoint):
    real_saved(self, checkpoint)
    stored.append(checkpoint)
def answer(go_on):
    if stored:
        stored.clear()
        open({reached!r}, "w").close()
        while os.path.exists({reached!r}):
            time.sleep(0.01)
    return real_answer(go_on)
real_saved, CheckpointBook.saved = CheckpointBook.saved, saved
real_answer, swrk.answer = swrk.answer, answer
"""


@pytest.mark.requirement("M2", "A9")
def test_whoever_asked_to_end_it_leaves_while_criu_ends_it(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    host = customized_host(_STANDS_STILL.format(reached=str(reached))).up()
    try:
        typed = _Typed(host, "leaves")
        with subprocess.Popen(
            [HOLD, "checkpoint", typed.session, "--end"],
            env=host.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as asking:
            until("CRIU may end it", reached.exists)
            asking.kill()
        reached.unlink()
        with host.client() as client:
            until("it is over", lambda: client.show(typed.session).state.is_over)
            assert client.show(typed.session).state is SessionState.ASLEEP
        done = host.hold("restore", typed.session)
        assert done.returncode == 0, done.stderr
        typed.reads()
    finally:
        host.down()


class _Typed:
    """A session with input that its program has not read yet."""

    def __init__(self, host: FaultHost, name: str) -> None:
        self._host = host
        self._go = Path(host.work, f"go-{name}")
        wait = f"until [ -e {self._go} ]; do sleep 0.1; done; exec cat"
        with host.client() as client:
            info = client.run(["/bin/sh", "-c", wait], level=Level.MOVABLE)
            self.session = info.id
            client.send(info.id, _TYPED)
            until("it is echoed", lambda: _TYPED in client.screen(info.id).text)

    def crosses(self, point: str, *words: str) -> None:
        """The daemon dies there; afterwards there is one session, which reads its input once."""
        host = self._host
        armed, before = arm(host, point), until("there is a daemon", host.daemon_pid)
        done = host.hold(*words[:1], self.session, *words[1:])
        if armed.exists():
            armed.unlink()  # else the daemon dies there in another test
            pytest.fail(f"it did not come by there: {done}")
        host.wait_new_daemon(before)
        state = until("it is settled", self._settled)
        if state is SessionState.ASLEEP:
            until("nothing of it is left", lambda: not self._processes())
            done = host.hold("restore", self.session)
            assert done.returncode == 0, done.stderr + host.log()[-3000:]
        assert self._processes() <= 3  # an init, a shell, its sleep
        self.reads()

    def reads(self) -> None:
        """It does, once, and is ended."""
        host = self._host
        self._go.touch()
        with host.client() as client:
            shown = until("it reads", lambda: _twice(client, self.session))
            assert shown.count(_TYPED) == 2, shown
            client.end(self.session)
        assert host.hold("verify", self.session).returncode == 0

    def _settled(self) -> SessionState | None:
        with self._host.client() as client:
            state = client.show(self.session).state
        assert state not in (SessionState.LOST, SessionState.ENDED), state
        return state if state in (SessionState.ASLEEP, SessionState.WORKING) else None

    def _processes(self) -> int:
        mark = self.session.encode()
        return sum(found.get(b"HOLDFAST_SESSION") == mark for _, found in environments())


def _twice(client: Host, session: str) -> str | None:
    """Echoed, and printed by the program."""
    text = client.screen(session).text
    return text if text.count(_TYPED) > 1 else None
