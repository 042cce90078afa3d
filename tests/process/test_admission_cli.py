"""Letting in and taking back, as people do it: `hold invite`, `hold device`, `hold delegate`, and
grants shown on this machine (R3, R5, A2)."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.model.admission import DeviceInfo, InviteInfo
from holdfast.model.errors import (
    BadSignature,
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    HoldfastError,
    HostLost,
)
from holdfast.model.ids import ActorId
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.wire.grants import chain_of_text, encode_chain
from holdfast.wire.invites import parse_link
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import admission as ad
from holdfast.wire.messages import session as m
from process.acting import add_actor, connected
from process.commanding import HOLD, Hold
from process.granted import from_host, make_key, program, public_key, showing
from process.waiting import PATIENCE_S, read_until

RELAY = "http://127.0.0.1:9"  # nothing answers there, and nothing here needs it to


@pytest.fixture(scope="module")
def host_home() -> Iterator[Hold]:
    with Hold() as hold:
        Path(hold.home, "config.toml").write_text(f'relays = ["{RELAY}"]\nrelay = "off"\n')
        hold.ok("up", "-d")
        yield hold


# -- invites --------------------------------------------------------------------------------------


@pytest.mark.requirement("R3", "R5")
def test_an_invite_is_a_link_that_says_what_it_allows_and_until_when(host_home: Hold) -> None:
    session = host_home.shell("invited")
    said = host_home.ok("invite", "--session", "invited", "--role", "read", "--expires", "2h")
    link, lets, may, warning, hint, here, _ = said.splitlines()
    parsed = parse_link(link)
    assert parsed.relay == RELAY and link.startswith(f"{RELAY}/i#")
    assert "one device" in lets
    assert "2h0m from now" in lets or "1h59m from now" in lets  # it is told a moment later
    assert "read" in may and "invited" in may and may.endswith("for 30 days")
    assert "nobody else" in warning and f"hold invite revoke {parsed.id.hex()[:8]}" in hint
    assert here.startswith("only this machine")
    (kept,) = [each for each in host_home.json("invite", "ls") if each["reach"] != "all"]
    assert set(kept) == set(InviteInfo._fields)
    assert kept["invite"] == parsed.id.hex() and kept["reach"] == f"session:{session}"
    assert parsed.code.hex() not in json.dumps(host_home.json("invite", "ls", "--ended"))
    host_home.ok("invite", "revoke", parsed.id.hex()[:8])
    assert host_home.json("invite", "ls") == []
    assert "revoked" in host_home.ok("invite", "ls", "--ended")


def test_an_invite_has_what_was_asked_for(host_home: Hold) -> None:
    words = ("--role", "approve", "--uses", "3", "--for", "7d", "--delegations", "0")
    made = host_home.json("invite", "--label", "ci", *words, "--inputs-per-s", "5")
    assert (made["reach"], made["rights"]) == ("label:ci", ["approve", "observe"])
    assert (made["uses"], made["lasts_s"], made["delegations"]) == (3, 7 * 86400, 0)
    assert (made["inputs_per_s"], made["bytes_per_s"]) == (5, None)
    assert parse_link(made["link"]).id.hex() == made["invite"]
    host_home.ok("invite", "revoke", made["invite"])


def test_a_terminal_gets_a_qr_code_and_a_pipe_does_not(host_home: Hold) -> None:
    words = ("invite", "--all", "--role", "read")
    assert "▀" not in host_home.ok(*words)
    ours, theirs = pty.openpty()
    try:
        env = {**host_home.env, "COLUMNS": "100", "LINES": "50"}
        done = subprocess.Popen([HOLD, *words], env=env, stdout=theirs, stderr=theirs)
        said = read_until(ours, b"takes it back").decode()
        assert done.wait(PATIENCE_S) == 0
    finally:
        os.close(ours)
        os.close(theirs)
    assert "▀" in said and "\x1b[38;5;16;48;5;231m" in said


def test_a_host_without_a_relay_makes_no_link_and_says_how_to_have_one(fresh_home: Hold) -> None:
    Path(fresh_home.home, "config.toml").write_text('relay = "off"\n')
    fresh_home.ok("up", "-d")
    said = fresh_home.fails("invalid_argument", "invite", "--all", "--role", "read")
    assert "no relay" in said and "hold host --relay" in said
    assert fresh_home.json("invite", "ls", "--ended") == []
    with connected(fresh_home) as host:
        made = host.ask(ad.MakeInvite(0, (), ("read",), 60.0, 60.0, code_only=True), ad.InviteMade)
    assert made.link == "" and len(made.code) == 16


@pytest.mark.requirement("A2", "R5")
def test_only_who_may_grant_there_invites_and_nobody_to_more_than_it_has(host_home: Hold) -> None:
    host_home.shell("lent-out")
    add_actor(host_home, "typist", "execute", "--all")
    add_actor(host_home, "lender", "execute", "grant", "lent-out", "--expires", "2h")
    invite = ("invite", "--session", "lent-out", "--expires", "30m")
    host_home.fails("not_permitted", "--as", "typist", *invite, "--role", "read")
    as_lender = ("--as", "lender", *invite)
    host_home.fails("not_permitted", *as_lender, "--role", "admin", "--for", "1h")
    host_home.fails("not_permitted", *as_lender, "--role", "execute")  # 30 days
    host_home.fails("not_permitted", "--as", "lender", "invite", "--all", "--role", "read")
    made = host_home.json(*as_lender, "--role", "execute", "--for", "1h")
    assert host_home.json("--as", "typist", "invite", "ls") == []
    host_home.fails("invite_invalid", "--as", "typist", "invite", "revoke", made["invite"])
    assert [each["invite"] for each in host_home.json("--as", "lender", "invite", "ls")] == [
        made["invite"]
    ]
    host_home.ok("--as", "lender", "invite", "revoke", made["invite"])


def test_invite_and_device_say_what_is_missing_or_too_much(host_home: Hold) -> None:
    for words in (
        *(("invite",), ("invite", "--all"), ("invite", "--role", "read")),
        *(("invite", "ls", "--role", "read"), ("invite", "ls", "--all"), ("invite", "ls", "x")),
        *(
            ("invite", "revoke"),
            ("invite", "revoke", "ab", "--ended"),
            ("invite", "ls", "--devices"),
        ),
        *(("invite", "--all", "--role", "read", "--devices"), ("device", "revoke")),
        *(("device", "ls", "x"), ("invite", "--label", "a b", "--role", "read")),
        ("invite", "--all", "--role", "read", "--uses", "0"),
        ("invite", "--all", "--role", "read", "--expires", "0"),
    ):
        host_home.fails("invalid_argument", *words)
    host_home.fails("grant_invalid", "invite", "--all", "--role", "read", "--for", "400d")
    host_home.fails("invite_invalid", "invite", "revoke", "nonsense")
    host_home.fails("no_such_session", "invite", "--session", "nowhere", "--role", "read")
    host_home.fails("no_such_actor", "device", "revoke", "ghost")
    add_actor(host_home, "local-only")
    host_home.fails("no_such_actor", "device", "revoke", "local-only")
    for words in (
        ("invite", "--all", "--label", "x", "--role", "read"),
        ("invite", "--all", "--role", "king"),
    ):
        assert host_home(*words).returncode == 64


def test_joining_is_for_who_comes_by_a_link(host_home: Hold) -> None:
    with connected(host_home) as host, pytest.raises(HoldfastError) as refused:
        host.ask(ad.Join(0, "me"), ad.Joined)
    assert refused.value.code == "not_permitted"


# -- grants shown on this machine ---------------------------------------------------------------


def delegated(hold: Hold, giver: str, session: str, *words: str) -> tuple[str, str]:
    """Somebody with a grant, and an agent that has a part of it for a minute; nobody told the host
    of the agent. Gives both grants."""
    hold.ok("actor", "add", giver, "--kind", "human")
    own = from_host(hold, giver)
    agent = f"{giver}-agent"
    make_key(hold, agent)
    to = ("delegate", agent, "--session", session, "--role", "execute", *(words or ("--for", "1m")))
    return own, showing(hold, giver, own).ok(*to).strip()


def next_message(host: Host, kind: type[m.Message]) -> m.Message:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        message = host.connection.receive(deadline - time.monotonic())
        if isinstance(message, kind):
            return message


@pytest.mark.requirement("R3", "A2", "R5")
@pytest.mark.parametrize("how", ["device", "actor"])
def test_an_agent_works_by_what_it_was_handed_until_its_giver_is_revoked(
    host_home: Hold, how: str
) -> None:
    name, giver = f"lent-{how}", f"giver-{how}"
    session = host_home.shell(name)
    host_home.shell(f"other-{how}")
    own, part = delegated(host_home, giver, session)
    agent = f"device-{identity_of(host_home, f'{giver}-agent')[:6]}"
    assert [each["name"] for each in json.loads(showing(host_home, giver, own).ok("ls", "--json"))]
    with program(host_home, f"{giver}-agent", part) as bot:
        assert [each.name for each in bot.sessions()] == [name], "the others do not exist for it"
        bot.send(name, f"echo typed-{how}")
        bot.ask(m.Attach(0, name, 7), m.Attached)
        assert host_home.json("turn", name)["holder_name"] == agent
        listed = {each["name"]: each for each in host_home.json("device", "ls")}
        assert set(listed[agent]) == set(DeviceInfo._fields)
        assert (listed[agent]["here"], listed[giver]["here"]) == (1, 0)
        assert 0 < listed[agent]["until"] - time.time() <= 60
        assert listed[agent]["given_by"] == listed[giver]["actor"]
        said = host_home.ok(how, "revoke", giver)
        assert giver in said
        assert isinstance(next_message(bot, m.Dismissed), m.Dismissed)
        for attempt in (
            lambda: bot.type_bytes(name, b"late"),
            lambda: bot.send(name, "late"),
            lambda: bot.show(name),
            lambda: bot.show(session),
        ):
            with pytest.raises(GrantRevoked):
                attempt()
        assert bot.sessions() == ()
    for who, shown in ((f"{giver}-agent", part), (giver, own)):
        showing(host_home, who, shown).fails("grant_revoked", "ls")
    assert host_home.json("turn", name)["holder_name"] != agent
    log = host_home.ok("log", name)
    assert f"{agent}" in log and f"typed-{how}" in log and "late" not in log
    assert f"revoked the actor {giver}" in log
    assert "late" not in host_home.ok("screen", name)


def identity_of(hold: Hold, name: str) -> str:
    return ActorId.of_key(public_key(hold, name))


@pytest.mark.requirement("R3")
def test_an_actor_that_came_by_a_grant_is_shown_with_it(host_home: Hold) -> None:
    session = host_home.shell("known-by")
    _, part = delegated(host_home, "creditor", session, "--for", "30m")
    agent = f"device-{identity_of(host_home, 'creditor-agent')[:6]}"
    showing(host_home, "creditor-agent", part).ok("screen", session)
    (grant,) = host_home.json("actor", "show", agent)["grants"]
    assert set(grant) == set(DeviceInfo._fields)
    assert grant["reach"] == f"session:{session}"
    said = host_home.ok("actor", "show", agent)
    assert f"came with execute in session known-by ({session[:8]}); from creditor; until" in said
    assert "nothing" not in said
    assert host_home.json("actor", "show")["grants"] == [], "who came by none has none"
    host_home.ok("device", "revoke", agent)
    said = host_home.ok("actor", "show", agent)
    assert "from creditor; revoked" in said and "nothing" in said


@pytest.mark.requirement("A2")
def test_a_grant_ends_by_itself_for_who_is_attached(host_home: Hold) -> None:
    session = host_home.shell("brief")
    _, part = delegated(host_home, "hasty", session, "--for", "3s")
    with program(host_home, "hasty-agent", part) as bot:
        bot.ask(m.Attach(0, session, 7), m.Attached)
        next_message(bot, m.Dismissed)
        with pytest.raises(GrantExpired):
            bot.send(session, "late")
    showing(host_home, "hasty-agent", part).fails("grant_expired", "ls")


@pytest.mark.requirement("A2")
def test_who_handed_on_takes_it_back_alone(host_home: Hold) -> None:
    session = host_home.shell("taken-back")
    own, part = delegated(host_home, "careful", session)
    careful = showing(host_home, "careful", own)
    agent = f"device-{identity_of(host_home, 'careful-agent')[:6]}"
    with program(host_home, "careful-agent", part) as bot:
        bot.send(session, "true")
        bot.ask(m.Attach(0, session, 7), m.Attached)
        assert agent in careful.ok("device", "revoke", agent)
        next_message(bot, m.Dismissed)
        with pytest.raises(GrantRevoked):
            bot.send(session, "late")
    careful.ok("send", session, "true")
    assert f"{agent} may nothing" in host_home.ok("log", session)
    actor = [each for each in host_home.json("actor", "ls") if each["name"] == agent]
    assert [each["revoked_at"] for each in actor] == [None]


@pytest.mark.requirement("A2", "R5")
def test_what_is_handed_on_is_never_more(host_home: Hold) -> None:
    session = host_home.shell("narrow")
    make_key(host_home, "narrow-agent")
    host_home.ok("actor", "add", "narrow-giver")
    own = from_host(host_home, "narrow-giver", f"session:{session}", inputs_per_s=5.0)
    giver = showing(host_home, "narrow-giver", own)
    to = ("delegate", "narrow-agent")
    giver.fails("grant_invalid", *to, "--role", "admin")
    giver.fails("grant_invalid", *to, "--role", "read", "--delegations", "1")
    giver.fails("grant_invalid", *to, "--role", "read", "--inputs-per-s", "6")
    giver.fails("invalid_argument", *to, "--role", "read", "--for", "2h")
    giver.fails("no_such_actor", "delegate", "ghost", "--role", "read")
    giver.fails("no_such_session", *to, "--role", "read", "--session", "nowhere")
    made = giver.json(*to, "--session", "narrow", "--role", "read")
    assert made["reach"] == f"session:{session}" and made["rights"] == ["observe"]
    assert chain_of_text(made["grant"]).last.inputs_per_s == 5.0
    agent = showing(host_home, "narrow-agent", made["grant"])
    agent.ok("screen", "narrow")
    agent.fails("not_permitted", "send", "narrow", "x")
    again = ("delegate", "narrow-giver", "--role", "read", "--for", "1m")
    assert "may not be delegated" in agent.fails("grant_invalid", *again)
    # For somebody else's key it is worth nothing.
    make_key(host_home, "thief")
    showing(host_home, "thief", made["grant"]).fails("grant_invalid", "ls")


def test_a_grant_may_be_in_a_file_and_needs_no_host_to_be_handed_on(host_home: Hold) -> None:
    session = host_home.shell("filed")
    host_home.ok("actor", "add", "filer")
    own = from_host(host_home, "filer")
    make_key(host_home, "filed-agent")
    path = f"{host_home.home}/agent.grant"
    key = public_key(host_home, "filed-agent").hex()
    giver = showing(host_home, "filer", own)
    giver.env["HOLDFAST_HOME"] = giver.home
    words = ("delegate", key, "--session", session, "--role", "read", "--output", path)
    said = giver.ok(*words)
    assert "read" in said and session in said
    assert Path(path).stat().st_mode & 0o777 == 0o600
    showing(host_home, "filed-agent", path).ok("screen", session)
    with Hold() as elsewhere:
        keys = Path(elsewhere.home, "actor-keys")
        keys.mkdir()
        source = Path(host_home.home, "actor-keys", "filer.key")
        Path(keys, "filer.key").write_text(source.read_text())
        elsewhere.env |= {"HOLDFAST_AS": "filer", "HOLDFAST_GRANT": own}
        made = elsewhere.ok(*words[:-2]).strip()
        assert chain_of_text(made).last.reach.steps == (f"session:{session}",)
        elsewhere.env["HOLDFAST_GRANT"] = ""
        elsewhere.fails("invalid_argument", *words[:-2])
    showing(host_home, "filed-agent", made).ok("screen", session)


def test_a_claim_with_a_bad_grant_is_refused_and_ends_its_connection(host_home: Hold) -> None:
    host_home.ok("actor", "add", "claimer")
    own = encode_chain(chain_of_text(from_host(host_home, "claimer")))
    me = identity_of(host_home, "claimer")
    for grant, actor, signature, error in (
        (b"garbage", me, None, GrantInvalid),
        (b"\0" * 5000, me, None, GrantInvalid),
        (own[:-1], me, None, GrantInvalid),
        (own, "claimer", None, GrantInvalid),
        (own, me, b"\0" * 64, BadSignature),
        (own, me, b"", BadSignature),
    ):
        with connected(host_home) as host:
            key = identity.load(f"{host_home.home}/actor-keys/claimer.key")
            welcome = host.connection.welcome
            proof = key.claim(welcome.host_key, welcome.challenge, host.operator)
            claim = access_messages.Claim(
                0, actor, proof if signature is None else signature, grant
            )
            with pytest.raises(error):
                host.ask(claim, access_messages.ActorShown)
            with pytest.raises(HostLost):
                host.connection.ask(access_messages.ShowActor(host.connection.next_id()), 10)


def test_a_grant_without_the_actor_it_is_for_is_not_quietly_left_out(host_home: Hold) -> None:
    """Else a program that is to be held to a grant would act as the unix user, who may all."""
    host_home.ok("actor", "add", "forgotten")
    own = from_host(host_home, "forgotten")
    assert "HOLDFAST_AS" in showing(host_home, "", own).fails("invalid_argument", "ls")
    showing(host_home, "forgotten", "nonsense!").fails("grant_invalid", "ls")
    showing(host_home, "forgotten", "/nowhere/at/all").fails("invalid_argument", "ls")


@pytest.mark.requirement("R3")
def test_a_session_does_not_inherit_what_its_starter_showed(host_home: Hold) -> None:
    host_home.ok("actor", "add", "runner")
    runner = showing(host_home, "runner", from_host(host_home, "runner"))
    runner.ok("run", "-d", "--name", "ran", "--", "bash", "--norc")
    host_home.ok("wait", "ran", "--for", "prompt", "--timeout", "20")
    assert host_home.ok("exec", "ran", "--", "echo [$HOLDFAST_GRANT]") == "[]\n"


@pytest.mark.requirement("R3")
def test_what_was_revoked_stays_revoked_when_the_daemon_is_replaced(host_home: Hold) -> None:
    session = host_home.shell("lasting")
    own, part = delegated(host_home, "lasting-giver", session)
    agent = showing(host_home, "lasting-giver-agent", part)
    agent.ok("screen", "lasting")
    host_home.ok("daemon", "restart")
    agent.ok("screen", "lasting")
    showing(host_home, "lasting-giver", own).ok("ls")
    host_home.ok("device", "revoke", "lasting-giver")
    host_home.ok("daemon", "restart")
    agent.fails("grant_revoked", "screen", "lasting")


@pytest.mark.requirement("A4")
def test_a_turn_held_by_a_grant_outlives_the_daemon_and_ends_with_the_grant(
    host_home: Hold,
) -> None:
    session = host_home.shell("held-by-grant")
    host_home.ok("turn", session, "policy", "ask-holder")
    _, part = delegated(host_home, "absent", session, "--for", "30m")
    agent = f"device-{identity_of(host_home, 'absent-agent')[:6]}"
    showing(host_home, "absent-agent", part).ok("turn", session, "request")

    def holder() -> str:
        return str(host_home.json("turn", session)["holder_name"])

    assert holder() == agent
    host_home.ok("daemon", "restart")
    assert holder() == agent, "it need not be the first to come back"
    add_actor(host_home, "bystander")
    host_home.ok("grant", "bystander", "read", session)
    assert holder() == agent, "nor is it judged as gone when others' rights change"
    host_home.ok("device", "revoke", agent)
    assert holder() == ""


_OTHER_USER = """
import os, pwd, sys
from holdfast.model.errors import HoldfastError
from holdfast.sdk import identity
from holdfast.sdk.client import Host
session, other = sys.argv[1:]
# Read while that is allowed: where this Python lives, another user may not even import.
me, shown = identity.chosen(), identity.grant()
identity.chosen, identity.grant = lambda: me, lambda: shown
me.sign(b"")
user = pwd.getpwnam("nobody")
os.setgroups([]); os.setgid(user.pw_gid); os.setuid(user.pw_uid)
with Host("hold.sock", client="test") as host:
    def attempt(what, *words, **named):
        try:
            what(*words, **named)
            return "ok"
        except HoldfastError as error:
            return error.code
    print(*(each.id for each in host.sessions()))
    print(attempt(host.send, session, "echo by-$((20 + 3))"), attempt(host.show, other),
          attempt(host.end, session), attempt(host.run, ["cat"]), attempt(host.shutdown))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
@pytest.mark.requirement("R3", "A2")
def test_another_unix_user_comes_into_one_session_by_a_grant_and_into_no_other(
    host_home: Hold,
) -> None:
    session, other = host_home.shell("shared"), host_home.shell("unshared")
    _, part = delegated(host_home, "sharer", session)
    done = subprocess.run(
        [sys.executable, "-c", _OTHER_USER, session, other],
        cwd=f"{host_home.home}/run",  # stands for a system host's /run/holdfast
        env=showing(host_home, "sharer-agent", part).env,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    seen, outcomes = done.stdout.splitlines()
    assert seen.split() == [session]
    assert outcomes.split() == [
        *("ok", "no_such_session", "not_permitted", "not_permitted", "not_permitted"),
    ]
    host_home.ok("wait", "shared", "--for", "text:by-23", "--timeout", "20")
