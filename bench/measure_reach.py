"""Through a relay, end to end encrypted: against the same host's own socket, and against ssh.

One host is at a relay on loopback, and a client elsewhere has joined it by an invite. Timed are the
echo of a key as in measure_echo, to the local socket, through the relay, and by `ssh` to an sshd on
loopback; text to an attached terminal, here and through the relay; and what the host sends to its
relay for one reader and for a hundred, from the relay's own count of frames and bytes."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import subprocess
import time
from functools import partial

from bench.content import ask, script, until_attached
from bench.far import Far, far_host
from bench.measure_echo import BLOCK, HINT_GONE_S, TIMEOUT_S, type_block
from bench.results import Row, Target
from bench.sampling import Samples, interleaved, percentile
from bench.stage import Stage
from bench.terminal import Terminal
from holdfast.sdk.client import Host
from holdfast.sdk.reach import machines
from holdfast.wire.messages import session as m

_READERS = 100
_TEXT_TIMEOUT_S = 120.0
_LOCAL, _SSH, _JUMP = "local", "ssh", "ssh -J"
_PORT_SSH = 17_022


def measure(stage: Stage) -> list[Row]:
    with far_host(stage) as far, contextlib.ExitStack() as attached:
        far.start("reach", script(far.pid_file("reach"), stage.text_file()))
        far.start("reach-keys", script(far.pid_file("reach-keys"), stage.block_file()))
        far.start("local-keys", script(far.pid_file("local-keys"), stage.block_file()))
        rows = _echo(stage, far, attached)
        rows.append(_text(stage, far))
        rows.append(_readers(stage, far))
    return rows


# -- keys -----------------------------------------------------------------------------------------


def _echo(stage: Stage, far: Far, attached: contextlib.ExitStack) -> list[Row]:
    terminals = {
        "holdfast": Terminal([far.program, "attach", "far/reach-keys"], far.client_env),
        _LOCAL: Terminal([far.program, "attach", "local-keys"], far.env),
    }
    terminals |= _ssh(stage, attached)
    samples: Samples = {name: [] for name in terminals}
    for terminal in terminals.values():
        attached.enter_context(terminal)
        until_attached(terminal)
        ask(terminal, "keys", TIMEOUT_S)
    time.sleep(HINT_GONE_S)
    for terminal in terminals.values():
        terminal.discard(0.1)
    blocks = {
        name: partial(type_block, terminal, samples[name]) for name, terminal in terminals.items()
    }
    interleaved(blocks, stage.scale.keys // BLOCK, warm_up=0)
    values = {name: percentile(taken[BLOCK // 2 :], 50) for name, taken in samples.items()}
    own = {"holdfast": values["holdfast"]}
    rows = [
        Row(
            "key echo through a relay, p50", "ms", own, "the local socket",
            baseline=values[_LOCAL], target=Target("<=", 6),
        )
    ]  # fmt: skip
    missing = "" if _SSH in values else "there is no sshd on this machine"
    rows += [
        Row(
            "key echo through a relay, against ssh through a jump host, p50", "ms", own, _JUMP,
            baseline=values.get(_JUMP), target=Target("<=", 3.2), note=missing,
        ),
        Row(
            "key echo through a relay, against ssh to loopback, p50", "ms", own, _SSH,
            baseline=values.get(_SSH), note=missing,
        ),
    ]  # fmt: skip
    return rows


def _ssh(stage: Stage, attached: contextlib.ExitStack) -> dict[str, Terminal]:
    """The content script by ssh to an sshd of our own on loopback, directly and through a jump host
    (the same sshd), which like a relay only passes on what it cannot read. {} without an sshd."""
    sshd = "/usr/sbin/sshd"
    if not os.path.exists(sshd):
        return {}
    place = stage.path("ssh")
    os.makedirs(place, mode=0o700)
    os.makedirs("/run/sshd", exist_ok=True)
    for name in ("host", "user"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{place}/{name}"]
        subprocess.run(make, check=True)
    os.rename(f"{place}/user.pub", f"{place}/authorized")
    options = {
        "Port": _PORT_SSH, "ListenAddress": "127.0.0.1", "HostKey": f"{place}/host",
        "AuthorizedKeysFile": f"{place}/authorized", "StrictModes": "no", "UsePAM": "no",
        "PidFile": f"{place}/pid", "PermitRootLogin": "yes", "PasswordAuthentication": "no",
    }  # fmt: skip
    with open(f"{place}/config", "w", encoding="utf-8") as file:
        file.writelines(f"{name} {value}\n" for name, value in options.items())
    server = subprocess.Popen([sshd, "-D", "-f", f"{place}/config"], stderr=subprocess.DEVNULL)
    attached.callback(server.wait)
    attached.callback(server.terminate)
    common = [
        "ssh", "-q", "-p", str(_PORT_SSH), "-i", f"{place}/user", "-F", "none",
        "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
        "-o", "ConnectionAttempts=20",
    ]  # fmt: skip
    host = f"{getpass.getuser()}@127.0.0.1"
    # What `-J` runs, with our key for the jump host too.
    jump = ["-o", f"ProxyCommand={shlex.join([*common, '-W', '%h:%p', host])}"]
    terminals = {}
    for name, way in ((_SSH, []), (_JUMP, jump)):
        typed = shlex.join(script(f"{place}/{len(way)}.pid", stage.block_file()))
        terminals[name] = Terminal([*common, *way, "-tt", host, typed], stage.env)
    return terminals


# -- text -----------------------------------------------------------------------------------------


def _text(stage: Stage, far: Far) -> Row:
    size = os.path.getsize(stage.text_file()) / 1e6
    speeds: Samples = {"holdfast": [], _LOCAL: []}
    places = {
        "holdfast": ([far.program, "attach", "far/reach"], far.client_env),
        _LOCAL: ([far.program, "attach", "reach"], far.env),
    }
    for _ in range(stage.scale.text_repetitions):
        for name, (command, env) in places.items():
            with Terminal(command, env) as terminal:
                until_attached(terminal)
                speeds[name].append(size / ask(terminal, "cat", _TEXT_TIMEOUT_S))
    values = {name: percentile(taken, 50) for name, taken in speeds.items()}
    return Row(
        f"{size:.0f} MB of coloured text through a relay", "MB/s", {"holdfast": values["holdfast"]},
        "the local socket", baseline=values[_LOCAL], target=Target(">=", 0.5),
    )  # fmt: skip


# -- readers --------------------------------------------------------------------------------------


def _readers(stage: Stage, far: Far) -> Row:
    """What one megabyte of output costs the host's uplink with one reader, and with a hundred."""
    far.start("watched", script(far.pid_file("watched"), stage.block_file()))
    os.environ["HOLDFAST_HOME"] = far.client_env["HOLDFAST_HOME"]
    machine = machines.find("far")
    costs = {}
    for count in (1, _READERS):
        with contextlib.ExitStack() as readers:
            hosts = [readers.enter_context(Host(machine, "bench")) for _ in range(count)]
            for host in hosts:
                _observe(host)
            time.sleep(1.0)  # all have gone over to what is sent to all
            before = far.uplink_bytes()
            with far.host() as local:
                offset = local.show("watched").output_offset
                local.send("watched", "cat 1")
                deadline = time.monotonic() + _TEXT_TIMEOUT_S
                while local.show("watched").output_offset < offset + 1_000_000:
                    if time.monotonic() > deadline:
                        raise TimeoutError("the text did not come")
                    time.sleep(0.05)
            time.sleep(0.5)
            costs[count] = (far.uplink_bytes() - before) / 1e6
    return Row(
        f"uplink for 1 MB of output to {_READERS} readers", "MB", {"holdfast": costs[_READERS]},
        "one reader", baseline=costs[1], target=Target("<=", 1.2),
    )  # fmt: skip


def _observe(host: Host) -> None:
    connection = host.connection
    attach = m.Attach(connection.next_id(), "watched", 1, observe=True, scrollback=False)
    connection.ask(attach, 20)
