"""Messages about policies of the gate: what is judged before it commits, and by which rules."""

from __future__ import annotations

from holdfast.model.gate_policy import Explanation, JudgedLine, PolicyInfo
from holdfast.wire.messages.base import Answer, Request


class ShowPolicy(Request, tag="policy_show"):
    """The policies in force, as far as the asker may see them. Answered by Policies."""

    session: str = ""  # those that apply to this session; empty is all


class SetPolicy(Request, tag="policy_set"):
    """Put a policy in force in one scope, in place of the one there. It is checked first: one that
    is not valid is refused with `policy_invalid`, and nothing changes. It is on disk, and in the
    journal of every session it applies to, before it is in force. Needs `grant` throughout the
    scope; for the host also what other requests about the host need. Answered by Policies."""

    text: str  # the policy, at most 256 KiB; of a starter empty
    source: str  # where it is from, for people: a file's name; or `starter:NAME`
    format: str = ""  # `cedar` or `toml`; empty: whichever it is
    session: str = ""  # only for this session
    label: str = ""  # only for sessions with this label; with neither for the whole host
    floor: bool = False  # as the floor of the whole host, which no narrower policy can widen


class CheckPolicy(Request, tag="policy_check"):
    """What a policy would say, without putting it in force: of the past lines of a session, or of
    lines that are given. Answered by PolicyChecked."""

    text: str  # as in `policy_set`
    source: str  # as in `policy_set`
    format: str = ""  # as in `policy_set`
    session: str = ""  # the lines that its journal has, the last 5000 at most
    lines: tuple[str, ...] = ()  # these lines too, at most 5000
    # where the given lines are run, an absolute path; empty: where the session was started
    cwd: str = ""
    kind: str = "agent"  # what kind of actor the given lines are judged for


class ExplainPolicy(Request, tag="policy_explain"):
    """Why one line was judged as it was, and what the policies in force say of it now. Answered by
    PolicyExplained."""

    session: str  # a name, an id, or 6 or more characters of an id
    seq: int  # number of the journal's entry: of a judgement, or of the begin of a command


class EndPolicy(Request, tag="policy_off"):
    """Take the policy of one scope out of force. Needs what setting it needs. Answered by Policies
    with those that are left in that scope."""

    session: str = ""  # that of this session
    label: str = ""  # that of this label; with neither that of the whole host
    floor: bool = False  # the floor of the whole host


class Policies(Answer, tag="policies"):
    policies: tuple[PolicyInfo, ...]  # floor first, then host, labels and sessions
    names: dict[str, str]  # names of the actors the asker sees, by id
    # why everything is refused that needs a policy: the host cannot read those that were in force;
    # empty: it can
    damaged: str = ""
    # after a change: the live sessions that it applies to and that have no exec gate, by name, the
    # first 64: there only lines are judged, and not what programs execute and write
    ungated: tuple[str, ...] = ()


class PolicyChecked(Answer, tag="policy_checked"):
    rules: int  # how many the policy has
    judged: int  # how many lines were judged
    refused: int  # how many of these it would have refused
    held: int  # how many it would have held
    skipped: int  # lines of the journal that nobody is known to have typed: not judged
    findings: tuple[JudgedLine, ...]  # those it would have refused or held, the last 1000 at most


class PolicyExplained(Answer, tag="policy_explained"):
    explanation: Explanation  # how it was judged, and why
