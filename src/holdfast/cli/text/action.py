"""Actions, their traces and scores, for people to read."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.cli.text.sanitize import sanitize
from holdfast.cli.text.table import clock, counted, table
from holdfast.model.measured import ActionTrace, ActorScore, Deviation, Effects, ScoreTotals

_NAMED = 3  # deviations of each sort in one line


def one_line(trace: ActionTrace) -> str:
    """What became of it."""
    parts = [f"action {trace.id}", _result(trace), _score(trace)]
    for word, found in (("missing", trace.missing), ("undeclared", trace.unexpected)):
        if found:
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            parts.append(f"{word}: {', '.join(map(_said, found[:_NAMED]))}{more}")
    if trace.effects is not None and trace.effects.partial:
        parts.append(f"not all was measured: {sanitize(trace.effects.partial[0])}")
    return "; ".join(part for part in parts if part)


def _result(trace: ActionTrace) -> str:
    if trace.state == "done":
        return f"status {trace.status}" if trace.status is not None else "done"
    why = f" ({sanitize(trace.code)})" if trace.code else ""
    return f"{trace.state.replace('_', ' ')}{why}"


def _score(trace: ActionTrace) -> str:
    if trace.score is None:
        return ""
    return "no score" if trace.score.score is None else f"score {trace.score.score:.2f}"


def _said(one: Deviation) -> str:
    kind = "" if one.kind == "env" else f"{one.kind.replace('_', ' ')} "  # `env FOO added`
    return f"{kind}{sanitize(one.what)}"


def trace_text(trace: ActionTrace) -> str:
    """All of it."""
    return "\n".join(f"{name + ':':12}{text}".rstrip() for name, text in _rows(trace))


def _rows(trace: ActionTrace) -> Iterator[tuple[str, str]]:
    declared, decision = trace.declared, trace.decision
    yield "action", trace.id
    yield "actor", sanitize(trace.actor)
    yield "intent", sanitize(declared.intent)
    yield "command", sanitize(declared.line or " ".join(declared.words))
    if declared.cwd:
        yield "in", sanitize(declared.cwd)
    if declared.key:
        yield "key", sanitize(declared.key)
    yield "at", clock(trace.at)
    if trace.retries:
        yield "retried", f"after {', '.join(map(sanitize, trace.retries))}"
    reason = f": {sanitize(decision.reason)}" if decision.reason else ""
    yield (
        "decision",
        "no policy in force"
        if decision.outcome == "none"
        else (f"{sanitize(decision.outcome)}{reason}"),
    )
    number = f", command #{trace.command}" if trace.command else ""
    yield "result", f"{_result(trace)}{number}"
    if trace.message:
        yield "", sanitize(trace.message)
    if trace.seconds is not None:
        latency = f", measured {trace.latency_s:.2f} s after it was asked for"
        yield "took", f"{trace.seconds:.2f} s{latency if trace.latency_s is not None else ''}"
    if trace.effects is not None:
        yield from _effect_rows(trace.effects)
    for word, found in (("missing", trace.missing), ("undeclared", trace.unexpected)):
        for each in found:
            yield word, _said(each)
    if trace.score is not None:
        yield "score", _score(trace).removeprefix("score ")
    seqs = [str(step.seq) for step in trace.steps]
    yield "journal", f"records {', '.join(seqs)}"


def _effect_rows(effects: Effects) -> Iterator[tuple[str, str]]:
    files = effects.files
    kinds = (("created", files.created), ("changed", files.changed), ("deleted", files.deleted))
    for word, paths in kinds:
        for path in paths:
            yield word, sanitize(path)
    for process in effects.processes:
        yield "left", f"{sanitize(process.name)} ({process.pid}): {sanitize(process.command)}"
    for port in effects.ports.opened:
        yield "opened", f"port {port}"
    for port in effects.ports.closed:
        yield "closed", f"port {port}"
    for change in effects.env:
        yield "shell", sanitize(change)
    if effects.cwd:
        yield "cwd", sanitize(effects.cwd)
    for peer in effects.peers:
        yield "peer", sanitize(peer)
    if effects.left_out:
        yield "", f"and {counted(effects.left_out, 'effect')} that are not named"
    for why in effects.partial:
        yield "unmeasured", sanitize(why)


def score_text(score: ActorScore) -> str:
    """An actor's record: a line for all of it, and one for each day."""
    if not score.totals.actions:
        return f"{sanitize(score.name)} has no actions in these days"
    head = ("DAY", "ACTIONS", "VALID", "SUCCESS", "CLEAN", "SIDE EFFECTS", "SCORE")
    rows = [(each.day, *_columns(each.totals)) for each in score.days]
    text = table(head, [*rows, ("all", *_columns(score.totals))])
    if score.recent is not None:
        text += f"\n\nthe last {counted(score.recent_count, 'action')}: {score.recent:.2f}"
    if score.unintended:
        text += "\n\nundeclared effects:"
    for each in score.unintended:
        more = f" and {each.count - len(each.effects)} more" * (each.count > len(each.effects))
        effects = ", ".join(map(_said, each.effects))
        text += f"\n  {clock(each.at)}  {sanitize(each.command)}: {effects}{more}"
    return f"{sanitize(score.name)}\n\n{text}"


def _columns(totals: ScoreTotals) -> tuple[str, ...]:
    mean = f"{totals.points / totals.scored:.2f}" if totals.scored else "-"
    return (
        str(totals.actions),
        _share(totals.valid, totals.actions),
        _share(totals.success, totals.measured),
        _share(totals.clean, totals.measured),
        str(totals.side_effects),
        mean,
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
