"""Policies in force: by scope, on disk, in journals; a floor that cannot be widened; a file that is
damaged."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.host.gate import policy_source
from holdfast.host.gate.effect_judge import EffectJudge
from holdfast.host.gate.policy_book import HOST_SCOPE, PolicyBook
from holdfast.host.gate.policy_store import PolicyStore
from holdfast.journal.entries import Body, GatePolicySet
from holdfast.model.errors import InvalidArgument, PolicyInvalid, StorageFailed
from holdfast.model.gate import Outcome, Part, Verdict
from holdfast.model.ids import SessionId
from unit.gating import ACTORS, SESSION, Links, NoScores, actor_of, effect, part

OTHER = SessionId("1" * 26)
ROOT, ALICE, EVE = 0, 1000, 1001
PERMISSIVE = '[[rule]]\nname = "wide"\nthen = "allow"\n'
STRICT = '[[rule]]\nname = "strict"\nthen = "refuse"\n'


class Live:
    """A live session, as far as policies apply to it."""

    def __init__(self, id: SessionId, uid: int, *labels: str) -> None:
        self.spec: Any = SimpleNamespace(id=id, uid=uid, labels=labels, name="work", user="alice")
        self.recorded: list[tuple[str, Body]] = []
        self.disk_full = False
        self.ungated = ""

    def record_policy(self, actor: str, body: Body) -> None:
        if self.disk_full:
            raise StorageFailed("no space left")
        self.recorded.append((actor, body))


class Host:
    """One host's policies, and a next daemon of it."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.live = {SESSION: Live(SESSION, ALICE, "prod"), OTHER: Live(OTHER, EVE, "prod", "db")}
        self.ended: set[SessionId] = set()
        self.restart()

    def restart(self) -> None:
        judge = EffectJudge(Links(), NoScores(), actor_of, lambda _: "alice")
        store = PolicyStore(str(self.state))
        self.book = PolicyBook(store, self.live, judge, ROOT, self.ended.__contains__)

    @property
    def file(self) -> Path:
        return self.state / "gate.json"

    def set(
        self, text: str, scope: str = HOST_SCOPE, *, floor: bool = False, uid: int = ROOT
    ) -> None:
        given = policy_source.read("" if text.startswith("starter:") else text, text, "")
        self.book.set(ACTORS["alice"].replace(uid=uid), scope, given, floor=floor)

    def off(self, scope: str = HOST_SCOPE, *, floor: bool = False) -> bool:
        return self.book.off(ACTORS["alice"].replace(uid=ROOT), scope, floor=floor)

    def says(self, text: str = "ls", session: SessionId = SESSION, by: str = "bot") -> Verdict:
        labels = self.live[session].spec.labels
        return self.book.judge(effect(text, part(by), session=session, labels=labels))

    def in_force(self, session: SessionId = SESSION) -> bool:
        return self.book.in_force(session, self.live[session].spec.labels)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


SCOPE = f"session:{SESSION}"


# -- scopes -------------------------------------------------------------------------------------


def test_with_no_policy_nothing_is_in_force(host: Host) -> None:
    assert not host.in_force() and host.says().outcome is Outcome.ALLOW


def test_the_narrowest_policy_counts_in_its_sessions(host: Host) -> None:
    host.set(STRICT)
    assert host.says().policy == "host:strict"
    host.set(PERMISSIVE, "label:prod")
    assert host.says().outcome is Outcome.ALLOW
    host.set(STRICT, SCOPE)
    assert host.says().policy == "session:strict"
    assert host.says(session=OTHER).outcome is Outcome.ALLOW, "the label's"
    assert host.off(SCOPE) and host.says().outcome is Outcome.ALLOW
    assert host.off("label:prod") and host.says().policy == "host:strict"
    assert host.off() and not host.in_force()
    assert not host.off()


def test_of_several_labels_the_strictest_counts(host: Host) -> None:
    host.set(PERMISSIVE, "label:prod")
    host.set(STRICT, "label:db")
    assert host.says(session=OTHER).policy == "label:db:strict"
    assert host.says().outcome is Outcome.ALLOW


@pytest.mark.requirement("A8")
def test_a_floor_cannot_be_widened_below(host: Host) -> None:
    host.set("starter:hold-destructive", floor=True)
    for scope in (HOST_SCOPE, "label:prod", SCOPE):
        host.set(PERMISSIVE, scope)
        assert host.says("rm x").policy == "floor:hold-destructive", scope
    host.set(STRICT, SCOPE)
    assert host.says("rm x").outcome is Outcome.REFUSE, "narrower is stricter here"
    for scope in (SCOPE, "label:prod", HOST_SCOPE):
        assert host.off(scope) and host.says("rm x").outcome is Outcome.HOLD
    with pytest.raises(InvalidArgument):
        host.set(PERMISSIVE, SCOPE, floor=True)
    assert host.off(floor=True) and not host.in_force()


def test_a_users_policy_for_a_label_is_about_that_users_sessions(host: Host) -> None:
    host.set(STRICT, "label:prod", uid=EVE)
    assert host.in_force(OTHER) and not host.in_force(SESSION)
    host.set(PERMISSIVE, "label:prod", uid=ALICE)
    assert host.says(session=OTHER).outcome is Outcome.REFUSE, "another user's does not replace it"
    host.set(STRICT, "label:prod", uid=ROOT)
    assert host.says().outcome is Outcome.REFUSE and host.in_force(OTHER)


def test_a_webhook_is_for_the_whole_host(host: Host) -> None:
    hook = '[webhook]\nurl = "http://127.0.0.1:9/"\n'
    for scope in (SCOPE, "label:prod"):
        with pytest.raises(InvalidArgument):
            host.set(hook, scope)
    host.set(hook, floor=True)
    assert host.says().outcome is Outcome.REFUSE, "nobody answers there"


# -- approvals ----------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_nobody_approves_a_line_that_is_its_own(host: Host) -> None:
    host.set("starter:two-person rm")
    labels = ("prod",)
    for how in (Part.TYPED, Part.SHAPED, Part.INPUT):
        by = (part("alice"), part("bob", how))
        held = effect("rm x", *by, labels=labels, approved=("alice", "bob", "bot"))
        assert host.book.judge(held).outcome is Outcome.HOLD, how
    good = effect("rm x", part("alice"), part("bob", Part.STATE), labels=labels, approved=("bob",))
    assert host.book.judge(good).outcome is Outcome.ALLOW
    revoked = effect("rm x", part("alice"), labels=labels).replace(
        approved_by=(ACTORS["carol"].id.replace("0", "1"),)
    )
    assert host.book.judge(revoked).outcome is Outcome.HOLD, "an actor that nobody knows"


# -- journals -----------------------------------------------------------------------------------


@pytest.mark.requirement("A8")
def test_a_policy_is_in_every_journal_it_applies_to_before_it_is_in_force(host: Host) -> None:
    seen: list[bool] = []
    live, record = host.live[SESSION], host.live[SESSION].record_policy

    def recording(actor: str, body: Body) -> None:
        seen.append(host.in_force())
        record(actor, body)

    live.record_policy = recording  # type: ignore[method-assign]
    host.set(STRICT, "label:prod")
    host.set(STRICT, SCOPE)
    host.off(SCOPE)
    entries = [body for _, body in live.recorded]
    assert all(isinstance(each, GatePolicySet) for each in entries)
    assert [each.scope for each in entries] == ["label:prod", SCOPE, SCOPE]  # type: ignore[attr-defined]
    assert entries[2].digest == "" and entries[1].digest  # type: ignore[attr-defined]
    assert [each.scope for _, each in host.live[OTHER].recorded] == ["label:prod"]  # type: ignore[attr-defined]
    assert seen[0] is False
    began = [body.scope for _, body in host.book.entries_for(OTHER, ("prod",))]
    assert began == ["label:prod"], "what a session that begins writes into its journal"


def test_what_cannot_be_recorded_is_not_in_force(host: Host) -> None:
    host.live[OTHER].disk_full = True
    with pytest.raises(StorageFailed):
        host.set(STRICT)
    assert not host.in_force() and not host.file.exists()
    said = [body for _, body in host.live[SESSION].recorded]
    assert [bool(each.digest) for each in said] == [True, False], "taken back"  # type: ignore[attr-defined]


# -- disk ---------------------------------------------------------------------------------------


def test_a_policy_survives_the_daemon_and_is_nobody_elses_to_read(host: Host) -> None:
    host.set("starter:agents-observe", "label:prod")
    host.set(STRICT, floor=True)
    assert stat.S_IMODE(os.stat(host.file).st_mode) == 0o600
    before = host.book.shown(lambda _: True)
    host.restart()
    assert host.book.shown(lambda _: True) == before
    assert host.says(by="alice").policy == "floor:strict"


def test_a_bad_policy_changes_nothing(host: Host) -> None:
    host.set(STRICT)
    before = host.file.read_bytes()
    for bad in ("permit(", "[[rule]]\nwho = 1\nthen = 'hold'", "starter:no", "x" * (300 << 10)):
        with pytest.raises(PolicyInvalid):
            host.set(bad)
    assert host.says().policy == "host:strict" and host.file.read_bytes() == before


def test_a_disk_that_takes_nothing_changes_nothing(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.set(STRICT)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("holdfast.adapters.atomic_file.replace", full)
    with pytest.raises(StorageFailed):
        host.set(PERMISSIVE)
    with pytest.raises(StorageFailed):
        host.off()
    assert host.says().policy == "host:strict"


@pytest.mark.requirement("A8")
@pytest.mark.parametrize("how", ["deleted", "garbage"])
def test_a_file_that_is_spoilt_while_in_force_changes_nothing_until_the_daemon_ends(
    host: Host, how: str
) -> None:
    host.set(STRICT)
    if how == "deleted":
        host.file.unlink()
    else:
        host.file.write_text("{")
    assert host.says().policy == "host:strict"
    (finding,) = host.book.findings()
    assert not finding.ok and "stay in force" in finding.detail
    host.set(STRICT)
    assert host.book.findings() == [], "set again, it is on disk again"


def spoilt(content: str) -> list[str]:
    """The same file, damaged in ways that are still JSON, or not."""
    kept = json.loads(content)
    text = json.loads(content)
    text["policies"][0]["text"] = PERMISSIVE
    invalid = json.loads(content)
    invalid["policies"][0]["format"] = "cedar"
    return [
        "",
        "{",
        content[:-20],
        "[]",
        json.dumps({**kept, "policies": 1}),
        *map(json.dumps, (text, invalid)),
    ]


@pytest.mark.requirement("A8")
def test_a_damaged_file_at_the_start_refuses_everything_gated(host: Host) -> None:
    host.set(STRICT)
    for content in spoilt(host.file.read_text()):
        host.file.write_text(content)
        host.restart()
        assert host.in_force() and host.in_force(OTHER), "nobody knows what was gated"
        said = host.says(by="alice")
        assert said.outcome is Outcome.REFUSE and "hold doctor" in said.reason, content
        (finding,) = host.book.findings()
        assert finding.name == "gate" and not finding.ok and finding.remedy
        with pytest.raises(StorageFailed):
            host.set(PERMISSIVE, SCOPE)
    host.set(PERMISSIVE)
    assert host.says().outcome is Outcome.ALLOW and host.book.findings() == []
    assert (host.state / "gate.json.damaged").exists()


def test_off_for_the_whole_host_begins_anew_after_damage(host: Host) -> None:
    host.file.write_text("{")
    host.restart()
    assert host.off() and not host.in_force()
    host.restart()
    assert not host.in_force()


def test_the_policy_of_a_session_that_ended_is_not_kept(host: Host) -> None:
    host.set(STRICT, SCOPE)
    del host.live[SESSION]
    host.restart()
    host.set(STRICT, "label:prod")
    assert SCOPE in host.file.read_text(), "it may only not be carried on yet"
    host.ended.add(SESSION)
    host.set(STRICT)
    assert SCOPE not in host.file.read_text()


def test_an_effect_that_cannot_be_judged_is_refused(host: Host) -> None:
    host.set(PERMISSIVE)

    class Broken(Links):
        def real(self, path: str) -> str:
            raise RuntimeError("no")

    judge = EffectJudge(Broken(), NoScores(), actor_of, lambda _: "alice")
    policies = host.book.counting(SESSION, ())
    said = judge.judge(effect("touch x", part("bot")), policies)
    assert said.outcome is Outcome.REFUSE and "could not be judged" in said.reason
