"""Who may do what, as people say it: `hold actor`, `hold grant`, `hold revoke`, `hold --as`."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from holdfast.model.actor import Actor
from holdfast.model.envelope import Envelope
from holdfast.model.errors import (
    AccessRevoked,
    ActorRevoked,
    BadSignature,
    EnvelopeExpired,
    HoldfastError,
)
from holdfast.sdk import identity
from holdfast.sdk.client import Host
from holdfast.wire.messages import access as access_messages
from holdfast.wire.messages import journal as journal_messages
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages
from process.acting import add_actor, connected, files_with, key_file
from process.commanding import HOLD, Hold
from process.waiting import PATIENCE_S


def me(hold: Hold) -> str:
    """The unix user's own actor."""
    name: str = hold.json("actor", "show")["name"]
    return name


def cat(hold: Hold, name: str, *words: str) -> str:
    session = hold.ok("run", "-d", "--name", name, *words, "--", "cat").strip()
    hold.ok("wait", name, "--for", "input", "--timeout", "20")
    return session


# -- identities -------------------------------------------------------------------------------


def test_the_unix_user_is_an_actor_without_set_up(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    own = fresh_home.json("actor", "show")
    assert set(own) == {*Actor._fields, "envelopes", "grants"}
    assert own["local"] and own["kind"] == "human"
    assert [(each["scope"], each["role"]) for each in own["envelopes"]] == [("all", "admin")]
    assert own["name"] in fresh_home.ok("actor", "ls")


def test_an_actor_is_made_listed_and_shown(host_home: Hold) -> None:
    said = host_home.ok(
        *("actor", "add", "made", "--kind", "service", "--display", "The Made"),
        *("--colour", "cyan"),
    )
    assert "made (service" in said and "may do nothing yet" in said
    shown = host_home.json("actor", "show", "made")
    assert (shown["kind"], shown["display"], shown["colour"]) == ("service", "The Made", "cyan")
    assert (shown["local"], shown["revoked_at"], shown["envelopes"]) == (False, None, [])
    listed = [each for each in host_home.json("actor", "ls") if each["name"] == "made"]
    assert [each["key"] for each in listed] == [shown["key"]]
    sheet = host_home.ok("actor", "show", "made")
    assert shown["id"] in sheet and "The Made, in cyan" in sheet and "may       nothing" in sheet


def test_the_private_key_stays_with_its_maker(host_home: Hold) -> None:
    add_actor(host_home, "private")
    path = key_file(host_home, "private")
    assert path.stat().st_mode & 0o777 == 0o600
    private = json.loads(path.read_text())["private"]
    card = host_home.ok("actor", "export", "private")
    assert private not in card and private not in host_home.ok("actor", "show", "private", "--json")
    assert files_with(host_home, private) == [str(path)]


def test_what_is_exported_makes_the_same_actor_on_another_host(
    host_home: Hold, fresh_home: Hold
) -> None:
    host_home.ok("actor", "add", "far", "--kind", "device", "--colour", "red")
    card = host_home.ok("actor", "export", "far")
    fresh_home.ok("up", "-d")
    there = json.loads(
        fresh_home.ok("actor", "add", "afar", "--public-key", "-", "--json", stdin=card.encode())
    )
    assert there["id"] == json.loads(card)["id"]
    assert (there["name"], there["kind"], there["colour"]) == ("afar", "device", "red")
    assert not key_file(fresh_home, "afar").exists()
    # Whoever has the key is that actor there too.
    fresh_home.env["HOLDFAST_AS"] = str(key_file(host_home, "far"))
    assert fresh_home.json("actor", "show")["name"] == "afar"


def test_a_bare_public_key_is_enough(host_home: Hold) -> None:
    made = json.loads(host_home.ok("actor", "add", "bare", "--public-key", "ab" * 32, "--json"))
    assert made["key"] == "ab" * 32
    for bad in ("ab", "zz" * 32, "ab" * 33):
        host_home.fails("invalid_argument", "actor", "add", "worse", "--public-key", bad)
    words = ("actor", "add", "worse", "--public-key", "-")
    host_home.fails("invalid_argument", *words, stdin=b"not json")
    host_home.fails("invalid_argument", "actor", "add", "again", "--public-key", "ab" * 32)


def test_a_key_is_kept_only_if_the_host_accepted_the_actor(host_home: Hold) -> None:
    add_actor(host_home, "small", "read", "--all")
    host_home.fails("not_permitted", "--as", "small", "actor", "add", "smaller")
    assert not key_file(host_home, "smaller").exists()
    host_home.ok("actor", "add", "elsewhere", "--public-key", "cd" * 32)
    host_home.fails("invalid_argument", "actor", "add", "elsewhere")
    assert not key_file(host_home, "elsewhere").exists()
    host_home.fails("invalid_argument", "actor", "add", "../escape")
    before = key_file(host_home, "small").read_text()
    host_home.fails("invalid_argument", "actor", "add", "small")
    assert key_file(host_home, "small").read_text() == before


def test_an_actor_whose_key_cannot_be_kept_does_not_stay(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    key_file(fresh_home, "x").parent.write_text("in the way")
    fresh_home.fails("storage_failed", "actor", "add", "unkept")
    (known,) = [each for each in fresh_home.json("actor", "ls") if each["name"] == "unkept"]
    assert known["revoked_at"] is not None


def test_actor_says_what_is_missing_or_too_much(host_home: Hold) -> None:
    for words in (
        *(("add",), ("revoke",), ("export",), ("ls", "x"), ("show", "x", "--kind", "human")),
        ("revoke", "x", "--public-key", "ab" * 32),
    ):
        host_home.fails("invalid_argument", "actor", *words)
    assert host_home("actor", "add", "x", "--kind", "ghost").returncode == 64
    assert host_home("actor", "add", "x", "--colour", "pink").returncode == 64


# -- proving it -------------------------------------------------------------------------------


def test_as_acts_as_another_actor_and_so_does_the_variable(host_home: Hold) -> None:
    add_actor(host_home, "hand", "execute", "--all")
    assert host_home.json("--as", "hand", "actor", "show")["name"] == "hand"
    done = host_home("actor", "show", "--json", stdin=b"")
    assert json.loads(done.stdout)["name"] == me(host_home)
    host_home.shell("handed")
    host_home.ok("--as", "hand", "exec", "handed", "--", "true")
    shown = host_home.json("show", "handed")["last_command"]
    assert (shown["actor"], shown["authors"]) == ("hand", ["hand"])
    assert "true  by hand" in host_home.ok("show", "handed")


def test_bash_completes_actors_roles_and_what_follows_as(host_home: Hold) -> None:
    add_actor(host_home, "completed", "read", "--all")
    script = subprocess.run([HOLD, "completion", "bash"], capture_output=True, timeout=30).stdout
    ask = (
        b'\ncomplete_it() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hold; '
        b'echo "${COMPREPLY[*]}"; }\n'
        b"complete_it hold --as comple\ncomplete_it hold --as completed catch\n"
        b"complete_it hold grant comple\ncomplete_it hold grant completed exe\n"
        b"complete_it hold grant completed execute turn.r\ncomplete_it hold actor sh\n"
        b"complete_it hold turn x hand\ncomplete_it hold turn x handoff comple\n"
        b"complete_it hold --as completed seize x --only-actor comple\n"
    )
    env = {**host_home.env, "PATH": os.path.dirname(HOLD) + ":" + host_home.env["PATH"]}
    done = subprocess.run(
        ["bash", "--norc"], input=script + ask, env=env, capture_output=True, timeout=60
    )
    assert done.stdout.decode().split() == [
        *("completed", "catchup", "completed", "execute", "turn.request", "show"),
        *("handoff", "completed", "completed"),
    ], done


def test_a_session_does_not_inherit_whom_its_starter_acted_as(host_home: Hold) -> None:
    add_actor(host_home, "starter", "execute", "--all")
    words = ("--name", "started", "--", "bash", "--norc")
    host_home.ok("--as", "starter", "run", "-d", *words)
    host_home.ok("wait", "started", "--for", "prompt", "--timeout", "20")
    assert host_home.ok("exec", "started", "--", "echo [$HOLDFAST_AS]") == "[]\n"


def test_an_actor_nobody_knows_is_named(host_home: Hold) -> None:
    host_home.shell("knows")
    assert "no key to act as 'ghost'" in host_home.fails("no_such_actor", "--as", "ghost", "ls")
    for words in (
        *(("actor", "show", "ghost"), ("actor", "revoke", "ghost"), ("actor", "export", "ghost")),
        *(("grant", "ghost", "read", "--all"), ("revoke", "ghost", "--all")),
        *(("turn", "knows", "handoff", "ghost"), ("turn", "knows", "grant", "ghost")),
    ):
        assert "ghost" in host_home.fails("no_such_actor", *words), words


@pytest.mark.requirement("M8")
def test_a_claim_with_another_key_is_refused(host_home: Hold) -> None:
    victim = add_actor(host_home, "victim", "execute", "--all")
    with connected(host_home) as host:
        welcome, operator = host.connection.welcome, host.operator
        forged = identity.make("victim").claim(welcome.host_key, welcome.challenge, operator)
        with pytest.raises(BadSignature):
            host.ask(access_messages.Claim(0, victim, forged), access_messages.ActorShown)


@pytest.mark.requirement("M8")
def test_a_claim_cannot_be_used_on_another_connection(host_home: Hold) -> None:
    victim = add_actor(host_home, "replayed", "execute", "--all")
    with connected(host_home, "replayed") as first, connected(host_home) as second:
        own = identity.Identity.unpack(
            {**json.loads(key_file(host_home, "replayed").read_text()), "actor": victim}
        )
        welcome = first.connection.welcome
        used = own.claim(welcome.host_key, welcome.challenge, second.operator)
        with pytest.raises(BadSignature):
            second.ask(access_messages.Claim(0, victim, used), access_messages.ActorShown)


def test_a_key_file_that_was_changed_is_not_used(host_home: Hold) -> None:
    add_actor(host_home, "changed")
    path = key_file(host_home, "changed")
    fields = json.loads(path.read_text())
    for change in ({"private": "00" * 32}, {"private": "short"}, {"holdfast": "other"}):
        path.write_text(json.dumps({**fields, **change}))
        host_home.fails("invalid_argument", "--as", "changed", "ls")


# -- envelopes --------------------------------------------------------------------------------


@pytest.mark.requirement("R5")
def test_grant_says_what_it_granted_and_lists_it(host_home: Hold) -> None:
    session = cat(host_home, "granted")
    add_actor(host_home, "granny")
    said = host_home.ok("grant", "granny", "execute", "halt", "granted", "--expires", "8h")
    assert "granny has " in said and "in session granted" in said and "8h0m from now" in said
    words = ("grant", "--bytes-per-s", "1000", "granny", "read", "--inputs-per-s", "5", "granted")
    made = host_home.json(*words)
    assert set(made) == {*Envelope._fields, "actor_name", "role"}
    assert (made["actor_name"], made["role"], made["rights"]) == ("granny", "read", ["observe"])
    assert (made["scope"], made["expires_at"]) == (f"session:{session}", None)
    assert (made["inputs_per_s"], made["bytes_per_s"]) == (5, 1000)
    listed = host_home.json("grant", "--ls", "granted")
    assert made in listed and {each["actor_name"] for each in listed} >= {me(host_home), "granny"}
    host_home.ok("grant", "granny", "approve", "--label", "elsewhere")
    assert "label elsewhere" in host_home.ok("grant", "--ls")
    assert "label elsewhere" not in host_home.ok("grant", "--ls", "granted")
    assert "label elsewhere" in host_home.ok("actor", "show", "granny")


def test_grant_and_revoke_say_what_is_missing(host_home: Hold) -> None:
    cat(host_home, "vague")
    add_actor(host_home, "vaguer")
    for words in (
        *(("grant",), ("grant", "vaguer"), ("grant", "vaguer", "vague")),
        *(("grant", "vaguer", "--all"), ("grant", "vaguer", "nonsense", "vague")),
        *(("grant", "vaguer", "read", "--label", "a b"), ("grant", "--ls", "vague", "more")),
        ("grant", "vaguer", "read", "vague", "--inputs-per-s", "0"),
        *(("revoke", "vaguer"), ("revoke", "vaguer", "vague", "--all")),
    ):
        host_home.fails("invalid_argument", *words)
    host_home.fails("no_such_session", "grant", "vaguer", "read", "nowhere")
    assert host_home("grant", "vaguer", "read", "--all", "--label", "x").returncode == 64
    assert host_home.json("actor", "show", "vaguer")["envelopes"] == []


@pytest.mark.requirement("A2")
def test_the_narrowest_envelope_counts(host_home: Hold) -> None:
    add_actor(host_home, "narrow", "execute", "--all")
    cat(host_home, "wide")
    cat(host_home, "labelled", "--label", "quiet", "--label", "other")
    host_home.ok("grant", "narrow", "read", "--label", "quiet")
    host_home.ok("--as", "narrow", "send", "wide", "x")
    host_home.fails("not_permitted", "--as", "narrow", "send", "labelled", "x")
    host_home.ok("grant", "narrow", "execute", "labelled")
    host_home.ok("--as", "narrow", "send", "labelled", "x")
    assert host_home.json("show", "labelled")["labels"] == ["quiet", "other"]
    assert "quiet,other" in host_home.ok("ls") and "quiet, other" in host_home.ok(
        "show", "labelled"
    )


@pytest.mark.requirement("A2")
def test_who_had_access_hears_that_it_was_revoked_and_nobody_else(host_home: Hold) -> None:
    session = cat(host_home, "taken-back")
    for name in ("had", "never"):
        add_actor(host_home, name)
    host_home.ok("grant", "had", "execute", "taken-back")
    for name in ("had", "never"):
        host_home.ok("revoke", name, "taken-back")
    for words in (("show", session), ("screen", "taken-back"), ("send", "taken-back", "x")):
        said = host_home.fails("access_revoked", "--as", "had", *words)
        assert "had's access to this session was revoked" in said
        host_home.fails("no_such_session", "--as", "never", *words)
    host_home.fails("no_such_session", "--as", "had", "show", "not-there")
    host_home.ok("daemon", "restart")
    host_home.fails("access_revoked", "--as", "had", "show", "taken-back")
    host_home.ok("grant", "had", "read", "taken-back")
    host_home.ok("--as", "had", "show", "taken-back")


@pytest.mark.requirement("A2", "R5")
def test_what_an_envelope_does_not_allow_is_refused_and_not_done(host_home: Hold) -> None:
    session = cat(host_home, "guarded")
    add_actor(host_home, "reader")
    as_reader = ("--as", "reader")
    host_home.fails("no_such_session", *as_reader, "show", "guarded")
    host_home.fails("no_such_session", *as_reader, "send", session, "x")
    host_home.ok("grant", "reader", "read", "guarded")
    host_home.ok(*as_reader, "screen", "guarded")
    for words in (
        *(("send", "guarded", "no"), ("keys", "guarded", "n"), ("signal", "guarded", "KILL")),
        *(("resize", "guarded", "10x10"), ("end", "guarded"), ("seize", "guarded")),
        *(("halt", "guarded"), ("resume", "guarded"), ("turn", "guarded", "request")),
        *(("turn", "guarded", "revoke"), ("turn", "guarded", "policy", "queue")),
        *(("grant", "reader", "admin", "guarded"), ("revoke", "reader", "--all")),
        *(("actor", "add", "friend"), ("actor", "revoke", "reader"), ("run", "-d", "--", "cat")),
        *(("down", "--end-sessions"), ("daemon", "restart")),
    ):
        assert "reader" in host_home.fails("not_permitted", *as_reader, *words), words
    assert host_home.json("show", "guarded")["size"] == {"cols": 80, "rows": 24}
    assert host_home.ok("tail", "guarded") == ""


@pytest.mark.requirement("A2")
def test_nobody_grants_more_than_it_has(host_home: Hold) -> None:
    cat(host_home, "lent")
    add_actor(host_home, "lender", "execute", "grant", "lent", "--expires", "1h")
    add_actor(host_home, "borrower")
    as_lender = ("--as", "lender", "grant", "borrower")
    host_home.fails("not_permitted", *as_lender, "admin", "lent")
    host_home.fails("not_permitted", *as_lender, "read", "lent", "--expires", "2h")
    host_home.fails("not_permitted", *as_lender, "read", "--all")
    host_home.ok(*as_lender, "read", "lent", "--expires", "10m")


@pytest.mark.requirement("A2")
def test_the_last_admin_cannot_be_removed_by_accident(fresh_home: Hold) -> None:
    fresh_home.ok("up", "-d")
    own = me(fresh_home)
    # Also while there is no session: nobody could start one any more.
    for words in (
        *(("actor", "revoke", own), ("revoke", own, "--all"), ("grant", own, "execute", "--all")),
        ("grant", own, "admin", "--all", "--expires", "1h"),
    ):
        assert own in fresh_home.fails("last_admin", *words), words
    cat(fresh_home, "ruled")
    for words in (
        *(("actor", "revoke", own), ("revoke", own, "--all"), ("revoke", own, "ruled")),
        *(("grant", own, "execute", "ruled"), ("grant", own, "admin", "ruled", "--expires", "1h")),
    ):
        assert own in fresh_home.fails("last_admin", *words), words
    add_actor(fresh_home, "second", "admin", "ruled")
    fresh_home.ok("revoke", own, "ruled")
    fresh_home.fails("access_revoked", "show", "ruled")
    fresh_home.ok("--as", "second", "grant", own, "admin", "ruled")


@pytest.mark.requirement("A2")
def test_a_rate_is_kept_to(host_home: Hold) -> None:
    cat(host_home, "slow")
    add_actor(host_home, "hasty", "execute", "slow", "--inputs-per-s", "0.001")
    host_home.ok("--as", "hasty", "send", "slow", "first")
    host_home.fails("rate_limited", "--as", "hasty", "send", "slow", "second")
    host_home.ok("wait", "slow", "--for", "text:first", "--timeout", "20")
    assert "second" not in host_home.ok("tail", "slow")


# -- taking it away ---------------------------------------------------------------------------


def refused_soon(host: Host, session: str, kind: type[HoldfastError]) -> HoldfastError:
    """The refusal that ends a stretch of writing; until then every write was taken."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            host.send(session, "x", enter=False)
        except kind as refusal:
            return refusal
    raise AssertionError("it goes on writing")


@pytest.mark.requirement("A2", "M8")
def test_a_revocation_counts_at_once_for_a_connected_operator(host_home: Hold) -> None:
    session = cat(host_home, "loose")
    add_actor(host_home, "loosed", "execute", "loose")
    with connected(host_home, "loosed") as host:
        attached = m.Attach(host.connection.next_id(), session, 1, raw=True)
        host.connection.ask(attached)
        host.send(session, "before", enter=False)
        host_home.ok("revoke", "loosed", "loose")
        with pytest.raises(AccessRevoked):
            host.send(session, "after", enter=False)
        # It was told, too: its view is closed, its turn is gone.
        told: set[str] = set()
        while not {"dismissed", "turn_lost"} <= told:
            told.add(host.connection.receive(PATIENCE_S).tag)
    assert host_home.json("turn", "loose")["holder"] == ""
    host_home.ok("wait", "loose", "--for", "text:before", "--timeout", "20")
    assert "after" not in host_home.ok("tail", "loose")


@pytest.mark.requirement("A2", "M8")
def test_narrowing_counts_at_once_for_a_connected_operator(host_home: Hold) -> None:
    session = cat(host_home, "tight")
    add_actor(host_home, "tightened", "execute", "tight")
    with connected(host_home, "tightened") as host:
        host.send(session, "before", enter=False)
        host_home.ok("grant", "tightened", "read", "tight")
        with pytest.raises(HoldfastError) as refusal:
            host.send(session, "after", enter=False)
        assert refusal.value.code == "not_permitted"
        assert host.show(session).name == "tight"


@pytest.mark.requirement("A2")
def test_a_revoked_actor_can_do_nothing_also_while_connected(host_home: Hold) -> None:
    session = cat(host_home, "past")
    add_actor(host_home, "gone", "admin", "--all")
    with connected(host_home, "gone") as host:
        host.send(session, "before", enter=False)
        assert "for good" in host_home.ok("actor", "revoke", "gone")
        for request in (
            *(m.Show(0, session), m.ListSessions(0), m.Run(0, ("cat",)), m.End(0, session)),
            *(
                access_messages.AddActor(0, "heir", "agent", bytes(32)),
                access_messages.ListActors(0),
                turn_messages.Seize(0, session),
            ),
            *(m.RestartDaemon(0), access_messages.GrantEnvelope(0, "gone", "all", ("admin",))),
        ):
            with pytest.raises(ActorRevoked):
                host.ask(request, m.Answer)
        with pytest.raises(ActorRevoked):
            host.send(session, "after", enter=False)
    host_home.fails("actor_revoked", "--as", "gone", "ls")
    host_home.fails("actor_revoked", "grant", "gone", "read", "--all")
    assert host_home.json("actor", "show", "gone")["revoked_at"] is not None
    assert "revoked" in host_home.ok("actor", "show", "gone")
    assert "after" not in host_home.ok("tail", "past")


def test_a_revoked_name_can_be_given_to_a_new_key(host_home: Hold) -> None:
    first = add_actor(host_home, "phoenix")
    host_home.ok("actor", "revoke", "phoenix")
    second = add_actor(host_home, "phoenix", "read", "--all")
    assert second != first
    assert host_home.json("--as", "phoenix", "actor", "show")["id"] == second


@pytest.mark.requirement("A2")
def test_an_envelope_ends_when_it_expires_and_says_so(host_home: Hold) -> None:
    session = cat(host_home, "brief")
    add_actor(host_home, "briefly")
    with connected(host_home, "briefly") as host:
        host_home.ok("grant", "briefly", "execute", "brief", "--expires", "2")
        host.send(session, "before", enter=False)
        refusal = refused_soon(host, session, EnvelopeExpired)
        assert "briefly's right" in refusal.message
    said = host_home.fails("envelope_expired", "--as", "briefly", "send", "brief", "late")
    assert f"{me(host_home)} can grant it" in said
    assert "expired" in host_home.ok("grant", "--ls", "brief")
    host_home.fails("no_such_session", "--as", "briefly", "send", "no-such", "late")
    assert "late" not in host_home.ok("tail", "brief")
    add_actor(host_home, "regent", "admin", "--all", "--expires", "0")
    for words in (("actor", "add", "heir"), ("run", "-d", "--", "cat"), ("daemon", "restart")):
        host_home.fails("envelope_expired", "--as", "regent", *words)


# -- nobody owns it ---------------------------------------------------------------------------


@pytest.mark.requirement("S1")
def test_who_created_a_session_has_nothing_special_in_it(host_home: Hold) -> None:
    add_actor(host_home, "maker", "execute", "--all")
    host_home.ok("--as", "maker", "run", "-d", "--name", "creation", "--", "cat")
    host_home.ok("wait", "creation", "--for", "input", "--timeout", "20")
    pid = host_home.json("show", "creation")["pid"]
    host_home.fails("not_permitted", "--as", "maker", "end", "creation")
    host_home.fails("not_permitted", "--as", "maker", "seize", "creation")
    host_home.ok("grant", "maker", "read", "creation")
    host_home.fails("not_permitted", "--as", "maker", "send", "creation", "x")
    host_home.ok("actor", "revoke", "maker")
    assert host_home.json("show", "creation")["pid"] == pid
    host_home.ok("send", "creation", "--enter", "still here")
    host_home.ok("wait", "creation", "--for", "text:still here", "--timeout", "20")


@pytest.mark.requirement("N9")
def test_a_session_says_which_one_it_follows(host_home: Hold) -> None:
    first = cat(host_home, "elder")
    host_home.fails("invalid_argument", "run", "-d", "--after", "elder", "--", "cat")
    host_home.ok("end", "elder")
    host_home.ok("run", "-d", "--name", "younger", "--after", first, "--", "cat")
    host_home.fails("no_such_session", "run", "-d", "--after", "nobody", "--", "cat")
    with connected(host_home) as host:
        shown = host.ask(journal_messages.GetJournal(0, "younger"), journal_messages.JournalShown)
    assert first.encode() in shown.records[0]
