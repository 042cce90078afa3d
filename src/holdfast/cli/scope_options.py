"""Where an envelope or a grant counts, as the verbs take it, and both in words."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.arguments import Options, Parser, utf8
from holdfast.cli.text.table import ago, clock
from holdfast.model.actor import check_name
from holdfast.model.envelope import ROLES, Envelope, Scope, ScopeKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.sdk.client import Host


def add_scope(parser: Parser) -> None:
    """The two that are not a session's name."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--label", type=utf8, metavar="L", help="in every session with this label, now and later"
    )
    where.add_argument("--all", action="store_true", help="in every session, now and later")


def scope_text(options: Options, session: str) -> str:
    """As the host reads it; "" when none is given."""
    if options.all:
        return "all"
    if options.label is not None:
        return f"label:{check_name(options.label, 'label')}"
    return f"session:{session}" if session else ""


class Named:
    """Scopes in words, with the names sessions have."""

    def __init__(self, host: Host) -> None:
        self._names = {info.id: info.name for info in host.sessions(ended=True)}

    def place(self, scope: Scope) -> str:
        if scope.kind is ScopeKind.ALL:
            return "all sessions"
        if scope.kind is ScopeKind.LABEL:
            return f"label {scope.name}"
        name = self._names.get(scope.name, "")  # type: ignore[call-overload]
        return f"session {name} ({scope.name[:8]})" if name else f"session {scope.name[:8]}"

    def reach(self, reach: str) -> str:
        """Where a grant counts: each of its steps."""
        steps = [] if reach == "all" else reach.split("/")
        return " with ".join(self._step(step) for step in steps) or "all sessions"

    def _step(self, step: str) -> str:
        kind, _, name = step.partition(":")
        if kind == "host":
            return f"the host {name[:8]}"
        return self.place(Scope(ScopeKind(kind), name))


def envelope_fields(envelope: Envelope, name: str) -> dict[str, object]:
    """For `--json`: the scope as text, and with the actor's name and the role's, if it is one."""
    fields = {**envelope.pack(), "scope": str(envelope.scope)}
    return {**fields, "actor_name": name, "role": envelope.role}


def role_or_rights(rights: Sequence[str]) -> str:
    """The role with exactly these rights, or all of them."""
    role = next((name for name, held in ROLES.items() if held == frozenset(rights)), "")
    return role or ", ".join(rights) or "nothing"


def envelope_text(envelope: Envelope, named: Named, now: float) -> str:
    """What, where, and within which bounds."""
    bounds = bounds_text(envelope, now)
    may = f"{role_or_rights(envelope.rights)} in {named.place(envelope.scope)}"
    return f"{may}; {bounds}" if bounds else may


def until_text(until: float, now: float) -> str:
    return f"until {clock(until)}, {ago(round(until - now))} from now"


def ended_text(until: float, revoked_at: float | None, now: float) -> str:
    """Why it counts no longer; "" while it does."""
    if revoked_at is not None:
        return f"revoked {ago(now - revoked_at)} ago"
    return f"expired {ago(now - until)} ago" if until <= now else ""


def bounds_text(envelope: Envelope, now: float) -> str:
    """Until when, and how fast; "" when there is no bound."""
    bounds = []
    if (until := envelope.expires_at) is not None:
        bounds.append(ended_text(until, None, now) or until_text(until, now))
    if envelope.inputs_per_s is not None:
        bounds.append(f"{envelope.inputs_per_s:g} inputs a second")
    if envelope.bytes_per_s is not None:
        bounds.append(f"{envelope.bytes_per_s:g} bytes a second")
    return "; ".join(bounds)
