"""One entry of a journal as one line that people read, or as JSON that programs read. Both are made
from the entry alone; whose id has which name is handed in."""

from __future__ import annotations

import re

from holdfast.cli.text.discontinuity import reason_text
from holdfast.cli.text.sanitize import quoted, sanitize
from holdfast.cli.text.table import clock, counted
from holdfast.journal import entries as e
from holdfast.model.discontinuity import cause_of_text
from holdfast.model.state import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.cli.journal.pages import NumberedEntry

    Name = Callable[[str], str]

_ACTION_CHARS = 300  # of the form of an action
# What the layer types around the keys of an actor, for the shell alone: of no interest to a reader.
_OURS = re.compile(rb"\x1b\[(?:20[01]|50\d\d)~")
_FORMS = {"paste": "pasted", "submit": "submitted", "exec": "ran by exec", "answer": "answered"}


def kind_of(body: e.Body) -> str:
    return body.kind if isinstance(body, e.UnknownEntry) else body.tag


def what(body: e.Body, name: Name) -> str:
    """What happened, in a few words."""
    say = _WORDS.get(type(body))
    return say(body, name) if say is not None else f"{sanitize(kind_of(body))} (not known here)"


def fields(kept: NumberedEntry, name: Name) -> dict[str, Any]:
    """The stable fields of `--json`. Bytes are in hexadecimal."""
    entry = kept.entry
    return {
        "seq": entry.seq,
        "at": entry.at,
        "epoch": entry.epoch,
        "actor": entry.actor,
        "actor_name": name(entry.actor),
        "actor_seq": entry.actor_seq,
        "trigger": name(entry.actor) if _has_originators(entry.body) else "",
        "originators": list(map(name, getattr(entry.body, "originators", ()))),
        "kind": kind_of(entry.body),
        "body": {key: _plain_value(value) for key, value in entry.body.pack().items()},
        "hash": kept.hash.hex(),
        "parent": entry.parent.hex(),
    }


def _has_originators(body: e.Body) -> bool:
    return isinstance(body, e.CommandBegan | e.ShapedEntry)


def _plain_value(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value


# -- words ------------------------------------------------------------------------------------


def _began(body: e.Began, name: Name) -> str:
    after = f", following {body.predecessor[:8]}" if body.predecessor else ""
    return f"began {sanitize(body.name)}: {sanitize(' '.join(body.argv))}{after}"


def _ended(body: e.EndedEntry, name: Name) -> str:
    if body.lost is not None:
        return f"the session was lost: {sanitize(body.lost)}"
    how = f"signal {signal_name(body.signal)}" if body.signal is not None else f"status {body.code}"
    return f"the session ended: {how}"


def _attached(body: e.AttachedEntry, name: Name) -> str:
    how = "to watch" if body.observe else "to write"
    away = f", after {body.gap_s:.0f} s away" if body.gap_s else ""
    return f"attached {how} ({sanitize(body.client) or 'unnamed client'}{away})"


def _input(body: e.InputEntry, name: Name) -> str:
    data = body.data
    if body.form != "keys":
        data = _OURS.sub(b"", data)
        if body.data and not data:
            return "asked the shell for the line at its prompt"
    return f"{_FORMS.get(body.form, 'typed')} {quoted(data)}"


def _command_began(body: e.CommandBegan, name: Name) -> str:
    others = [name(author) for author in body.authors[:-1]]
    made = f"  [with input of {', '.join(others)}]" if others else ""
    return f"command {body.number} began: {sanitize(body.text)}  (in {sanitize(body.cwd)}){made}"


def _shaped(body: e.ShapedEntry, name: Name) -> str:
    more = f" and {body.left_out} more" if body.left_out else ""
    keys = ", ".join(map(sanitize, body.keys))
    return f"command {body.number} changed {keys}{more}{_behind(body.originators, name)}"


def _adopted(body: e.AdoptedEntry, name: Name) -> str:
    before = ", ".join(map(name, body.before)) or "nobody"
    return f"answers for {sanitize(body.target)} from now on, in place of {before}"


def _behind(originators: tuple[str, ...], name: Name) -> str:
    return f"  [behind it: {', '.join(map(name, originators))}]" if len(originators) > 1 else ""


def _refused(body: e.RefusedEntry, name: Name) -> str:
    times = f" {body.count} times" if body.count > 1 else ""
    size = f", {counted(body.size, 'byte')}" if body.size else ""
    request = sanitize(body.what).replace("_", " ")  # its tag: yield_turn
    return f"was refused{times}: {request} ({sanitize(body.code)}{size})"


def _unrecorded(body: e.Unrecorded, _: Name) -> str:
    return f"{body.count} entries ({sanitize(body.what)}) are missing: there was no room for them"


def _intended(body: e.Intended, _: Name) -> str:
    return f"says what comes next is for: {sanitize(body.text)}"


def _action(body: e.ActionEntry, _: Name) -> str:
    after = f", after {counted(len(body.retried), 'refusal')}" if body.retried else ""
    return f"action {body.action}{after}: {sanitize(body.declared, _ACTION_CHARS)}"


def _action_measured(body: e.ActionMeasured, _: Name) -> str:
    score = "no score" if body.score.score is None else f"score {body.score.score:.2f}"
    many = body.score.side_effects
    effects = "" if many is None else f", {counted(many, 'undeclared effect')}"
    missing = "".join(f"; missing: {each.kind} {sanitize(each.what)}" for each in body.missing)
    why = f"; {sanitize(body.message)}" if body.message else ""
    return f"action {body.action} was measured: {score}{effects}{missing}{why}"


def _forwarded(body: e.ForwardedEntry, name: Name) -> str:
    many = "a connection" if body.count == 1 else f"{body.count} more connections"
    return f"opened {many} to port {body.port} ({sanitize(body.process)})"


def _turn_moved(body: e.TurnMoved, name: Name) -> str:
    before = name(body.before) if body.before else "nobody"
    holder = name(body.holder) if body.holder else "nobody"
    why = f": {sanitize(body.reason)}" if body.reason else ""
    return f"the turn went from {before} to {holder} ({sanitize(body.step)}){why}"


def _gate_policy_set(body: e.GatePolicySet, name: Name) -> str:
    where = "the host's floor" if body.floor else sanitize(body.scope)
    if not body.digest:
        return f"took the gate's policy of {where} out of force"
    return f"set the gate's policy of {where}: {sanitize(body.source)} ({body.digest[:12]})"


def _envelope_set(body: e.EnvelopeSet, name: Name) -> str:
    rights = " ".join(sanitize(right) for right in body.rights) or "nothing"
    rates = ((body.inputs_per_s, "inputs/s"), (body.bytes_per_s, "bytes/s"))
    bounds = [f"at most {rate:g} {unit}" for rate, unit in rates if rate is not None]
    if body.expires_at is not None:
        bounds.append(f"until {clock(body.expires_at)}")
    where = f"in {sanitize(body.scope)}"
    return f"{name(body.subject)} may {', '.join([rights, where, *bounds])}"


def _halted(body: e.HaltedEntry, name: Name) -> str:
    proven = "proven frozen" if body.frozen else "NOT proven frozen"
    named = "".join(
        f"; {what} {', '.join(map(str, pids))}"
        for what, pids in (("caught", body.caught), ("could not stop", body.running))
        if pids
    )
    return f"halted {counted(body.tasks, 'task')} in {body.seconds * 1000:.0f} ms, {proven}{named}"


def _halt_asked(body: e.HaltAskedEntry, name: Name) -> str:
    of = "the session" if body.scope == "session" else f"what {name(body.scope)} started"
    return f"asked to halt {of}" + (f": {sanitize(body.reason)}" if body.reason else "")


def _carried_on(body: e.CarriedOn, name: Name) -> str:
    return f"a new daemon (pid {body.daemon_pid}) carried on"


def _discontinued(body: e.Discontinued, name: Name) -> str:
    why = reason_text(body.reason, body.cause or cause_of_text(body.reason))
    return f"discontinued after entry {body.last_seq}: {why}"


def _leased(body: e.Leased, name: Name) -> str:
    again = f" again, after epoch {body.before}" if body.before else ""
    forced = f", by force: {sanitize(body.reason)}" if body.reason else ""
    return f"the host holds the session's lease{again} ({body.length_s:g} s){forced}"


def _fenced(body: e.FencedEntry, name: Name) -> str:
    if body.later_epoch:
        return f"the session lives on another host, in epoch {body.later_epoch}"
    return f"the host lost the session's lease ({sanitize(body.cause)}); everything is frozen"


def _checkpointed(body: e.CheckpointedEntry, name: Name) -> str:
    note = f": {sanitize(body.note)}" if body.note else ""
    ended = " and put it to sleep" if body.ended else ""
    return f"checkpointed it as {sanitize(body.id)}{ended}{note}"


def _restored(body: e.RestoredEntry, name: Name) -> str:
    missing = []
    if body.resets:
        missing.append(f"{counted(body.resets, 'connection')} to peers outside reset")
    if body.inputs_lost:
        missing.append(f"{counted(body.inputs_lost, 'later input')} not part of it")
    if body.attested:
        missing.append(f"on the word that {sanitize(body.attested)}")
    rest = f"; {', '.join(missing)}" if missing else ""
    return f"restored it from {sanitize(body.checkpoint)}, after epoch {body.before}{rest}"


def _judged(body: e.JudgedEntry, name: Name) -> str:
    done = {"allow": "allowed", "refuse": "refused", "hold": "held for approval"}
    what = f"{body.kind} {sanitize(body.text)!r}" if body.text else body.kind
    why = f": {sanitize(body.reason)}" if body.reason else ""
    first = body.contributors[0].actor if body.contributors else ""
    others = dict.fromkeys(sanitize(each.name) for each in body.contributors if each.actor != first)
    behind = f"  [contributors: {', '.join(others)}]" if others else ""
    return f"{what} was {done.get(body.outcome, sanitize(body.outcome))}{why}{behind}"


def _approval_asked(body: e.ApprovalAskedEntry, name: Name) -> str:
    return f"asked for approval {body.id} of {body.kind} {sanitize(body.text)!r}"


def _approved(body: e.ApprovedEntry, name: Name) -> str:
    more = "" if body.enough else ", and more must"
    return f"approved {body.id}{more}" + (f": {sanitize(body.note)}" if body.note else "")


def _denied(body: e.DeniedEntry, name: Name) -> str:
    return f"denied {body.id}" + (f": {sanitize(body.note)}" if body.note else "")


_REAPED = {"evict": "evicted to disk", "end": "ended"}

_WORDS: dict[type[e.Body], Callable[[Any, Name], str]] = {
    e.Began: _began,
    e.CarriedOn: _carried_on,
    e.TailCut: lambda body, name: f"a torn tail of {counted(body.size, 'byte')} was cut",
    e.EndAskedEntry: lambda body, name: "asked for the session to end",
    e.EndedEntry: _ended,
    e.Discontinued: _discontinued,
    e.SealEntry: lambda body, name: f"signed everything from entry {body.from_seq} on",
    e.AttachedEntry: _attached,
    e.DetachedEntry: lambda body, name: "detached",
    e.InputEntry: _input,
    e.BlindInput: lambda body, name: f"typed {counted(body.size, 'secret byte')}",
    e.Voided: lambda body, name: f"inputs {body.seq} to {body.last_seq} never arrived",
    e.RefusedEntry: _refused,
    e.Unrecorded: _unrecorded,
    e.DetachedByEntry: lambda body, name: f"detached the terminal {body.operator[:8]}",
    e.PinnedEntry: lambda body, name: (
        "pinned it: it is not reaped" if body.pinned else "unpinned it: it may be reaped"
    ),
    e.ReapWarnedEntry: lambda body, name: (
        f"warned that it is idle and will be {_REAPED.get(body.action, body.action)}: "
        f"{sanitize(body.why)}"
    ),
    e.ReapedEntry: lambda body, name: (
        f"had it {_REAPED.get(body.action, body.action)}: {sanitize(body.why)}"
    ),
    e.RevivedEntry: lambda body, name: (
        f"had it follow {body.predecessor}, which was lost, in {sanitize(body.cwd)}"
    ),
    e.Renamed: lambda body, name: (
        f"renamed it from {sanitize(body.before)} to {sanitize(body.name)}"
    ),
    e.Resized: lambda body, name: f"resized the terminal to {body.cols}x{body.rows}",
    e.Signalled: lambda body, name: f"sent signal {signal_name(body.signal)}",
    e.ForwardedEntry: _forwarded,
    e.JudgedEntry: _judged,
    e.ApprovalAskedEntry: _approval_asked,
    e.ApprovedEntry: _approved,
    e.DeniedEntry: _denied,
    e.ApprovalOverEntry: lambda body, name: f"approval {body.id}: {sanitize(body.how)}",
    e.Intended: _intended,
    e.ActionEntry: _action,
    e.ActionMeasured: _action_measured,
    e.CommandBegan: _command_began,
    e.CommandEnded: lambda body, name: f"command {body.number} ended: status {body.status}",
    e.ShapedEntry: _shaped,
    e.AdoptedEntry: _adopted,
    e.TurnAsked: lambda body, name: "asked for the turn",
    e.TurnWithdrawn: lambda body, name: f"{name(body.subject)} waits for the turn no longer",
    e.PolicySet: lambda body, name: f"set the turn policy to {sanitize(body.policy)}",
    e.GatePolicySet: _gate_policy_set,
    e.TurnMoved: _turn_moved,
    e.BlindTurn: lambda body, name: f"{'began' if body.on else 'ended'} a blind turn",
    e.EnvelopeSet: _envelope_set,
    e.ActorRevokedEntry: lambda body, name: f"revoked the actor {name(body.subject)}",
    e.HaltAskedEntry: _halt_asked,
    e.HaltedEntry: _halted,
    e.ResumedEntry: lambda body, name: "resumed",
    e.Leased: _leased,
    e.FencedEntry: _fenced,
    e.CheckpointedEntry: _checkpointed,
    e.CheckpointFailedEntry: lambda body, name: (
        f"could not have it checkpointed: {sanitize(body.reason)}"
    ),
    e.RestoredEntry: _restored,
}
