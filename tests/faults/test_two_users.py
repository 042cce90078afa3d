"""Two unix users on one machine: to each, the other's sessions do not exist."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pwd
import re
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from faults.hosting import FaultHost, process_key
from faults.reached import Guests, ReachedHost, plain_relay
from holdfast.model.errors import HoldfastError
from holdfast.model.ids import OperatorId
from holdfast.model.size import Size
from holdfast.model.state import Level
from holdfast.sdk.connection import Connection
from holdfast.sdk.reach.machines import Machine
from holdfast.wire.frames import encode
from holdfast.wire.messages import (
    BY_TAG,
    access,
    admission,
    checkpoints,
    forward,
    gate_actions,
    gate_approvals,
    gate_policy,
    gate_provenance,
    host_links,
    journal,
    moving,
    preflight,
    relays,
    turn,
)
from holdfast.wire.messages import session as m
from holdfast.wire.messages.shared_output import Share

PROGRAM = str(Path(__file__).with_name("programs") / "stranger.py")
ASKS = str(Path(__file__).with_name("programs") / "stranger_asks.py")

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="becoming other users needs root"),
    pytest.mark.timeout(60),
]


@contextlib.contextmanager
def stranger(host: FaultHost, name: str, *targets: str) -> Iterator[dict[str, Any]]:
    """What the user `name` came to. The home of a test's host is root's alone, as any state
    directory; starting in its run directory stands for a system host's /run/holdfast, which all
    can reach."""
    process = subprocess.Popen(
        [sys.executable, PROGRAM, name, *targets],
        cwd=host.home / "run",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdin is not None
    line = process.stdout.readline()
    try:
        if not line:
            process.wait(10)
            assert process.stderr is not None
            raise AssertionError(process.stderr.read())
        yield json.loads(line)
    finally:
        process.kill()
        process.communicate(timeout=10)


def ways_to_name(session: str, name: str) -> tuple[str, ...]:
    return (name, session, session[:8], session[:1])


def judge(seen: dict[str, Any], user: str) -> None:
    outcomes = dict(seen["outcomes"])
    for what in ("run as root", "restart", "shutdown", "shutdown all"):
        assert outcomes.pop(what) == "not_permitted", what
    assert outcomes and set(outcomes.values()) == {"no_such_session"}, outcomes
    assert seen["listed"] == []
    entry = pwd.getpwnam(user)
    for _, said in seen["own"]:
        assert f"uid={entry.pw_uid} gid={entry.pw_gid} groups={entry.pw_gid}" in said


@pytest.mark.requirement("S3", "A2")
def test_users_cannot_see_or_touch_each_others_sessions(host: FaultHost) -> None:
    client = host.client()
    roots = client.run(["cat"], name="roots")
    ended = client.run(["/bin/true"], name="ended")
    before, daemon = process_key(roots.pid), host.daemon_pid()
    targets = (*ways_to_name(roots.id, "roots"), *ways_to_name(ended.id, "ended"))
    with stranger(host, "nobody", *targets) as first:
        judge(first, "nobody")
        own = [str(session) for session, _ in first["own"]]
        names = [f"own-{Level.PLAIN}", f"own-{Level.CONTAINED}"]
        # The second user's own sessions have the same names; they are other sessions.
        with stranger(host, "daemon", *targets, *own, *names) as second:
            judge(second, "daemon")
            assert not set(own) & {str(session) for session, _ in second["own"]}
        for session in own:
            assert client.show(session).user == "nobody"
    assert process_key(roots.pid) == before and host.daemon_pid() == daemon
    assert str(client.show(roots.id).size) == "80x24" and client.screen(roots.id).text.strip() == ""
    assert len(client.sessions()) == 5, "root sees all, and all outlive their creators' clients"


@pytest.mark.requirement("S3")
def test_files_and_fifos_of_a_root_host_tell_other_users_nothing(host: FaultHost) -> None:
    client = host.client()
    info = client.run(["bash", "--norc"], user="nobody", cwd="/")
    nobody = pwd.getpwnam("nobody")

    def mode(path: str) -> int:
        return stat.S_IMODE(os.stat(host.home / path).st_mode)

    assert mode(".") == 0o700 and mode("sessions") == 0o700
    assert mode(f"sessions/{info.id}") == 0o700
    for path in (host.home / "sessions" / info.id).iterdir():
        with contextlib.suppress(FileNotFoundError):  # what is written anew has another name first
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert mode("run/supervisor.lock") == 0o600 and mode("host.log") == 0o600
    bell = os.stat(host.home / f"run/bells/{info.id}")
    assert bell.st_uid == nobody.pw_uid and stat.S_IMODE(bell.st_mode) & 0o077 == 0


@pytest.mark.requirement("S3")
def test_the_bells_can_be_reached_by_their_users_and_listed_by_nobody(host: FaultHost) -> None:
    host.client().run(["bash", "--norc"], user="nobody", cwd="/")
    assert stat.S_IMODE(os.stat(host.home / "run/bells").st_mode) == 0o711


def every_request(session: str, actor: str, invite: str) -> list[m.Request]:
    """Each request of the protocol at least once, about what belongs to root."""
    return [
        m.Run(1, ("id",), user="root"),
        m.Run(1, ("sleep", "60"), cwd="/", predecessor=session),
        m.ListSessions(1, ended=True),
        m.Show(1, session),
        m.GetGraph(1, session),
        m.GetScreen(1, session),
        m.Attach(1, session, 1),
        m.Attach(1, session, 1, observe=True, raw=True, since=0),
        m.Detach(1, 1),
        Share(1, session, 1),
        m.Watch(1, session),
        m.Watch(1),
        m.End(1, session),
        m.Rename(1, session, "theirs"),
        m.DetachTerminals(1, session),
        m.Acknowledge(1, session),
        m.Acknowledge(1),
        m.Revive(1, session),
        m.Pin(1, session),
        m.Reap(1, dry_run=True),
        m.Reap(1),
        checkpoints.MakeCheckpoint(1, session),
        checkpoints.ListCheckpoints(1, session),
        checkpoints.ListCheckpoints(1),
        checkpoints.DeleteCheckpoint(1, "ck-0000000000000000"),
        checkpoints.Restore(1, session),
        checkpoints.Restore(1, session, cold=True),
        preflight.CanMove(1, session),
        preflight.CanTake(1, ()),
        m.Input(1, session, 1, b"x"),
        m.Submit(1, session, 1, "x"),
        m.Keys(1, session, 1, ("C-c",)),
        m.Exec(1, session, 1, "id"),
        gate_actions.Act(1, session, 1, '{"intent": "x", "command": "id"}'),
        gate_actions.GetTrace(1, session, "1"),
        gate_actions.GetScore(1, actor),
        m.Resize(1, session, Size(10, 10)),
        m.Signal(1, session, 9),
        forward.Forward(1, session, 1, 80),
        turn.GetTurn(1, session),
        turn.RequestTurn(1, session),
        turn.WithdrawTurn(1, session),
        turn.GrantTurn(1, session, actor),
        turn.YieldTurn(1, session),
        turn.HandOffTurn(1, session, actor),
        turn.RevokeTurn(1, session),
        turn.SetTurnPolicy(1, session, "queue"),
        turn.SetBlind(1, session, True),
        turn.Seize(1, session, halt=True),
        turn.Halt(1, session),
        turn.Resume(1, session),
        turn.Resume(1, session, "because"),
        turn.CatchUp(1, session),
        journal.GetJournal(1, session),
        journal.Verify(1, session),
        journal.Prove(1, session, 1, 0),
        journal.Blame(1, session),
        journal.Certify(1, session),
        gate_provenance.AskWhy(1, session, "var:PATH"),
        gate_provenance.Adopt(1, session, "var:PATH"),
        gate_approvals.GetApprovals(1, session),
        gate_approvals.GetApprovals(1),
        gate_approvals.Approve(1, "a1b2c3d4"),
        gate_approvals.Deny(1, "a1b2c3d4"),
        access.Claim(1, actor, b"0" * 64),
        access.AddActor(1, "taken-over", "agent", b"k" * 32),
        access.ListActors(1),
        access.ShowActor(1, actor),
        access.RevokeActor(1, actor),
        access.GrantEnvelope(1, "nobody", session, ("admin",)),
        access.GrantEnvelope(1, actor, "all", ()),
        access.GrantEnvelope(1, "nobody", "all", ("admin",)),
        access.RevokeEnvelope(1, actor, "all"),
        access.RevokeEnvelope(1, "nobody", session),
        access.ListEnvelopes(1),
        access.ListEnvelopes(1, session),
        admission.MakeInvite(1, (f"session:{session}",), ("read",), 60, 60, code_only=True),
        admission.MakeInvite(1, (), ("admin",), 60, 60, code_only=True),
        admission.ListInvites(1),
        admission.RevokeInvite(1, invite, devices=True),
        admission.ListDevices(1),
        admission.RevokeDevice(1, actor),
        admission.SeeInvite(1),
        admission.Join(1, "phone"),
        gate_policy.ShowPolicy(1, session),
        gate_policy.ShowPolicy(1),
        gate_policy.SetPolicy(1, "", "starter:agents-observe", session=session),
        gate_policy.SetPolicy(1, "", "starter:agents-observe"),
        gate_policy.SetPolicy(1, "", "starter:agents-observe", floor=True),
        gate_policy.CheckPolicy(1, "", "starter:agents-observe", session=session),
        gate_policy.ExplainPolicy(1, session, 1),
        gate_policy.EndPolicy(1, session),
        gate_policy.EndPolicy(1),
        m.GetHost(1),
        relays.SetRelays(1, ("https://relay.invalid",)),
        relays.SetRelays(1, (), ("https://relay.example",)),
        relays.GetRelays(1),
        host_links.GetTicket(1, session, bytes(32)),
        moving.Move(1, session, "ticket", "elsewhere"),
        m.GetMetrics(1),
        m.Prune(1, dry_run=True),
        m.Prune(1),
        m.RestartDaemon(1),
        m.Shutdown(1),
        m.Shutdown(1, end_sessions=True),
    ]


# What else than `no_such_session` a stranger is answered. Several for a tag: in the order asked.
ANSWERS = {
    "run": ["not_permitted", "no_such_session"],
    "list": ["sessions"],
    "detach": ["invalid_argument"],
    "watch": ["no_such_session", "done"],
    "acknowledge": ["no_such_session", "sessions"],  # the last of none
    "approvals": ["no_such_session", "approvals_shown"],  # the last of none
    "reap": ["not_permitted", "not_permitted"],
    "checkpoints": ["no_such_session", "checkpoint_list"],  # the last of none
    "delete_checkpoint": ["no_such_checkpoint"],
    "can_take": ["not_permitted"],
    "approve": ["no_such_approval"],
    "deny": ["no_such_approval"],
    "claim": ["no_such_actor"],
    "add_actor": ["actor_shown"],  # of its own
    "list_actors": ["actors"],
    "show_actor": ["no_such_actor"],
    "revoke_actor": ["no_such_actor"],
    "score": ["no_such_actor"],
    "grant": ["no_such_session", "no_such_actor", "envelopes"],  # the last to itself
    "revoke": ["no_such_actor", "no_such_session"],
    "list_envelopes": ["envelopes", "no_such_session"],
    "make_invite": ["no_such_session", "invite_made"],  # the last for its own sessions
    "list_invites": ["invites"],
    "revoke_invite": ["invite_invalid"],
    "list_devices": ["devices"],
    "revoke_device": ["no_such_actor"],
    "policy_show": ["no_such_session", "policies"],
    "policy_set": ["no_such_session", "not_permitted", "not_permitted"],
    "policy_off": ["no_such_session", "not_permitted"],
    "see_invite": ["not_permitted"],
    "join": ["not_permitted"],
    "host": ["host_shown"],
    "set_relays": ["not_permitted", "not_permitted"],
    "get_relays": ["not_permitted"],
    "get_ticket": ["not_permitted"],
    "move": ["no_such_session"],
    "metrics": ["not_permitted"],
    "prune": ["not_permitted", "not_permitted"],
    "restart_daemon": ["not_permitted"],
    "shutdown": ["not_permitted", "not_permitted"],
}
# A device in place of the user: it is no other actor, and gives nothing for longer than it has it.
AFAR = ANSWERS | {
    "claim": ["not_permitted"],
    "grant": ["no_such_session", "no_such_actor", "not_permitted"],
}


def asked_by(host: FaultHost, user: str, requests: Sequence[m.Request]) -> list[list[str]]:
    """What each is answered when this unix user sends it: see programs/stranger_asks.py."""
    done = subprocess.run(
        [sys.executable, ASKS, user],
        input=json.dumps([base64.b64encode(encode(each)).decode() for each in requests]),
        cwd=host.home / "run",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[list[str]] = json.loads(done.stdout)
    return answers


def asked_from_afar(machine: Machine, requests: Sequence[m.Request]) -> list[list[str]]:
    """The same of a device that came in through a relay."""
    answers = []
    for request in requests:
        connection = Connection(machine, OperatorId(os.urandom(16).hex()), "test")
        try:
            answer = connection.ask(request.replace(id=connection.next_id()), 20)
            answers.append([answer.tag, repr(answer)])
        except HoldfastError as error:
            answers.append([error.code, ""])
        finally:
            connection.close()
    return answers


Asks = Callable[[Sequence[m.Request]], list[list[str]]]


@pytest.mark.requirement("A2", "R3")
@pytest.mark.parametrize("owner", ["root", "daemon"])
def test_no_request_of_another_user_reaches_the_host_or_sessions_of_others(
    host: FaultHost, owner: str
) -> None:
    """Neither root's sessions nor a third user's."""
    reaches_nothing(host, owner, lambda requests: asked_by(host, "nobody", requests), ANSWERS)


@pytest.mark.requirement("A2", "R3")
@pytest.mark.timeout(120)
def test_no_request_of_another_users_device_reaches_the_host_or_sessions_of_others(
    guests: Guests,
) -> None:
    """It has whatever that user could give, and came through a relay."""
    relay = plain_relay()
    host = ReachedHost([relay])
    try:
        host.up()
        invite = admission.MakeInvite(1, (), ("admin",), 600, 600)
        ((tag, made),) = asked_by(host, "nobody", [invite])
        found = re.search(r"http\S+/i#[^'\s]+", made)
        assert tag == "invite_made" and found is not None, made
        machine = guests.join(found.group(), "phone")
        reaches_nothing(host, "root", lambda requests: asked_from_afar(machine, requests), AFAR)
    finally:
        host.down()
        relay.close()


def reaches_nothing(host: FaultHost, owner: str, ask: Asks, answered: dict[str, list[str]]) -> None:
    client = host.client()
    roots = client.run(["cat"], name="roots", user="" if owner == "root" else owner, cwd="/")
    asked_by(host, owner, [m.GetHost(1)])  # from then on it has an actor
    actors = client.ask(access.ListActors(0), access.Actors).actors
    (actor,) = (each for each in actors if each.name == owner)
    made = client.ask(
        admission.MakeInvite(0, (), ("read",), 60, 60, code_only=True), admission.InviteMade
    )
    relay = client.ask(relays.SetRelays(0, ("https://relay.example",)), relays.Relays).relays
    before, daemon = process_key(roots.pid), host.daemon_pid()
    turn_before = client.ask(turn.GetTurn(0, roots.id), turn.TurnShown)

    asked = every_request(roots.id, actor.id, made.invite.invite)
    requests = {tag for tag, kind in BY_TAG.items() if issubclass(kind, m.Request)}
    assert {each.tag for each in asked} == requests, "a request that is not tried"
    answers = dict[str, list[str]]()
    for request, (code, text) in zip(asked, ask(asked), strict=True):
        answers.setdefault(request.tag, []).append(code)
        for secret in (roots.id, actor.id, made.invite.invite):
            assert secret not in text, request
    expected = {
        tag: answered.get(tag, ["no_such_session"] * len(found)) for tag, found in answers.items()
    }
    assert answers == expected

    assert process_key(roots.pid) == before and host.daemon_pid() == daemon
    after = client.ask(relays.GetRelays(0), relays.Relays).relays
    assert [each.address for each in after] == [each.address for each in relay]
    assert client.ask(turn.GetTurn(0, roots.id), turn.TurnShown).turn == turn_before.turn
    invites = client.ask(admission.ListInvites(0), admission.Invites).invites
    mine = next(each for each in invites if each.invite == made.invite.invite)
    assert mine.revoked_at is None
    assert client.ask(access.ShowActor(0, actor.id), access.ActorShown).actor.revoked_at is None
    assert str(client.show(roots.id).size) == "80x24" and client.screen(roots.id).text.strip() == ""
