"""What each tool answers. The output schemas that clients are given are made from these types.

Every key may be absent: a refusal has only `refused`, and what is empty or does not apply is left
out of some answers, because every character of an answer is read by a model.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required

from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from holdfast.sdk.aio.values import StateName


class RefusalAnswer(TypedDict, total=False):
    """Why something was not done."""

    code: Annotated[str, Field(description="stable, for programs")]
    message: str
    retryable: Annotated[bool, Field(description="the same call may succeed later")]
    what_to_do: Annotated[str, Field(description="the next step")]
    ending: Annotated[dict[str, Any], Field(description="of a lost session: why, what follows it")]


class RefusableAnswer(TypedDict, total=False):
    refused: RefusalAnswer


class RowsAnswer(RefusableAnswer, total=False):
    """What is said of a list's rows that were left out."""

    left_out: Annotated[int, Field(description="rows behind these")]
    next: Annotated[int, Field(description="give it as `first` to go on behind these rows")]


class CommandRow(TypedDict):
    command: str
    by: Annotated[str, Field(description="who pressed Enter; empty when nobody did")]
    status: Annotated[int | None, Field(description="null while it runs")]
    directory: str
    seconds: float | None


class SessionRow(TypedDict, total=False):
    name: str
    id: str
    state: StateName
    waits_for: Annotated[str, Field(description="the prompt that it shows")]
    full_screen_program: Annotated[
        bool, Field(description="an editor, a pager: it is in use and asks nothing")
    ]
    turn_holder: Annotated[str, Field(description="empty: the turn is free")]
    operators: Annotated[int, Field(description="how many are attached")]
    directory: str
    command: Annotated[str, Field(description="what the session was started with")]
    last_command: CommandRow | None
    labels: list[str]
    age_s: int
    ending: Annotated[dict[str, Any], Field(description="how it ended, or why it was lost")]
    note: Annotated[str, Field(description="what an ending means for you")]


class SessionsAnswer(RowsAnswer, total=False):
    sessions: list[SessionRow]


class TurnRow(TypedDict):
    holder: Annotated[str, Field(description="empty: the turn is free")]
    yours: bool
    waiting: list[str]


class CursorRow(TypedDict):
    col: int
    row: int


class PresentAnswer(RefusableAnswer, total=False):
    """What most answers say of the session."""

    session: str
    state: StateName
    waits_for: Annotated[str, Field(description="the prompt that it shows")]
    turn: TurnRow
    ending: Annotated[dict[str, Any], Field(description="how it ended, or why it was lost")]


class ObserveAnswer(PresentAnswer, total=False):
    cursor: Annotated[int, Field(description="give it as `since`, or as an offset to read from")]
    changed: bool
    screen: Annotated[str, Field(description="the screen as text")]
    changed_rows: Annotated[
        dict[str, str], Field(description="of a full-screen program: rows that changed, from 0")
    ]
    printed: Annotated[str, Field(description="what was printed since")]
    printed_lost_bytes: Annotated[int, Field(description="before it, left out")]
    cut_chars: Annotated[int, Field(description="left out at the beginning of the text")]
    size: str
    title: str
    cursor_position: CursorRow
    full_screen_program: bool


class PageAnswer(RefusableAnswer, total=False):
    text: str
    next: Annotated[int, Field(description="the offset to go on from")]
    more: Annotated[bool, Field(description="more has been printed already")]
    lost_bytes: Annotated[int, Field(description="before the text, no longer held")]
    full_screen_program: Annotated[
        bool, Field(description="its drawing was left out: observe gives the screen")
    ]


class ProcessRow(TypedDict):
    pid: Annotated[int, Field(description="as programs in the session see it")]
    host_pid: Annotated[int, Field(description="as the host sees it")]
    parent: Annotated[int, Field(description="a pid in the session; 0: not in it")]
    command: str
    directory: str
    state: str
    waits_for: str
    listens: list[str]


class GraphAnswer(RowsAnswer, total=False):
    processes: list[ProcessRow]
    ports: Annotated[dict[str, int], Field(description="TCP port: pid of the listener")]
    port: int
    listening: bool
    owner: ProcessRow | None


TurnMoveRow = TypedDict("TurnMoveRow", {"step": str, "from": str, "to": str, "reason": str})


class CatchUpAnswer(RowsAnswer, total=False):
    """Its rows are those of all its lists, in this order."""

    journal_records: Annotated[list[int], Field(description="first and last")]
    commands: list[CommandRow]
    commands_left_out: Annotated[int, Field(description="older ones, which are not kept")]
    own_commands: Annotated[int, Field(description="yours, not listed")]
    turn_moves: list[TurnMoveRow]
    directory: str
    changes: list[dict[str, Any]]
    changes_known: bool
    jobs: list[str]
    text_at_the_prompt: str
    text_known: bool
    cut_chars: int
    typed_by: list[str]
    requests_refused: Annotated[int, Field(description="of anybody, for any reason")]
    halted: bool


class WaitAnswer(PresentAnswer, total=False):
    happened: bool
    line: Annotated[str, Field(description="the text that matched")]
    owner: ProcessRow


class OperatorRow(TypedDict):
    name: str
    client: Annotated[str, Field(description="the program")]
    only_watches: bool
    holds_turn: bool
    waits_for_turn: bool
    since_s: int


class OperatorsAnswer(RowsAnswer, total=False):
    operators: list[OperatorRow]
    turn: TurnRow


class ChainRow(TypedDict):
    command: int
    text: str
    by: str
    typed_by: list[str]
    at: float
    did: Annotated[str, Field(description="what it did here: `set var:PATH`, `started 4711`")]


class WhyAnswer(RowsAnswer, total=False):
    target: str
    known: Annotated[bool, Field(description="false: nobody saw who did it; those may have")]
    originators: Annotated[list[str], Field(description="all behind it; none: since the start")]
    trigger: str
    chain: list[ChainRow]
    adopted: bool
    note: str


class MeasuredAnswer(TypedDict, total=False):
    """What a command did, against what it was expected to do."""

    action: Annotated[str, Field(description="its id in the record")]
    missing: Annotated[list[str], Field(description="expected, and not found")]
    undeclared: Annotated[list[str], Field(description="found, and not expected")]
    side_effects: Annotated[int | None, Field(description="how many; null: not known")]
    score: Annotated[float | None, Field(description="from 0 to 1; null: not known")]
    not_measured: Annotated[list[str], Field(description="what could not be seen, and why")]


class CommandAnswer(RefusableAnswer, total=False):
    running: Annotated[bool, Field(description="it goes on; ask again with the handle")]
    begun: Annotated[bool, Field(description="the shell has begun it")]
    handle: Annotated[str, Field(description="ask `result` with it, at any time")]
    state: Annotated[StateName, Field(description="of the session, while the command runs")]
    waits_for: Annotated[str, Field(description="what the program asks; answer it")]
    held: Annotated[
        str,
        Field(description="it waits for this approval and has not run; ask `result` later"),
    ]
    held_because: str
    approvers: Annotated[list[str], Field(description="who may approve; empty: anybody but you")]
    status: Annotated[int | None, Field(description="null: not known, or nothing ran (a comment)")]
    output: str
    output_so_far: str
    next: Annotated[int, Field(description="give it as `since`: only what is printed behind it")]
    more: Annotated[bool, Field(description="more has been printed already, from `next` on")]
    screen: Annotated[str, Field(description="of a full-screen program, in place of its output")]
    full_screen_program: bool
    cut_chars: Annotated[int, Field(description="left out at the beginning of the output")]
    output_begins: Annotated[
        int, Field(description="offset for read_output, to read all of the output in pages")
    ]
    lost_bytes: int
    seconds: float
    directory: str
    journal_seq: int
    cut_off: Annotated[
        RefusalAnswer, Field(description="why no more is known of a command that had begun")
    ]
    ending: Annotated[dict[str, Any], Field(description="how its session ended, or was lost")]
    measured: Annotated[MeasuredAnswer, Field(description="when `expect` was given")]


class ApprovalRow(TypedDict):
    id: str
    session: str
    status: Annotated[str, Field(description="pending, approved, denied, expired or withdrawn")]
    kind: str
    text: Annotated[str, Field(description="exactly what would be done")]
    actor: Annotated[str, Field(description="who sets it off")]
    contributors: list[str]
    reason: str
    needs: Annotated[int, Field(description="so many must approve")]
    approvers: Annotated[list[str], Field(description="names or kinds; empty: all with the right")]
    approved_by: list[str]
    changed_since: Annotated[list[str], Field(description="in the session, since it was asked")]
    expires_in_s: int


class ApprovalsAnswer(RowsAnswer, total=False):
    approvals: list[ApprovalRow]


class ApprovalAnswer(RefusableAnswer, total=False):
    approval: ApprovalRow


class StepRow(TypedDict):
    seq: Annotated[int, Field(description="number of the journal's record")]
    what: str
    text: str


class TraceAnswer(RowsAnswer, total=False):
    """Its rows are those of `missing`, `undeclared`, `effects` and `steps`, in this order."""

    action: str
    actor: str
    intent: str
    command: str
    state: Annotated[str, Field(description="running, done, refused, not_run or unknown")]
    decision: Annotated[str, Field(description="of the policy: allow, refuse, hold or none")]
    decision_reason: str
    status: int | None
    directory: str
    seconds: float | None
    retried_after: Annotated[list[str], Field(description="codes of refusals")]
    error: str
    output_begins: Annotated[int, Field(description="offset for read_output")]
    missing: Annotated[list[str], Field(description="declared, and not found")]
    undeclared: Annotated[list[str], Field(description="found, and not declared")]
    effects: Annotated[list[str], Field(description="all that was found")]
    not_measured: Annotated[list[str], Field(description="what could not be seen, and why")]
    steps: list[StepRow]
    score: Annotated[float | None, Field(description="from 0 to 1; null: not known")]
    success: bool | None
    side_effects: int | None


class ScoreDayRow(TypedDict):
    day: str
    totals: dict[str, Any]


class ScoreAnswer(RowsAnswer, total=False):
    actor: str
    score: Annotated[float | None, Field(description="mean of these days; null: no actions")]
    recent: Annotated[float | None, Field(description="mean of the last actions")]
    recent_actions: int
    totals: dict[str, Any]
    days: list[ScoreDayRow]


class FindingRow(TypedDict, total=False):
    what: Required[str]
    verdict: Required[
        Annotated[
            Literal["movable", "resets", "blocks"],
            Field(description="blocks: as long as it is so there is no checkpoint"),
        ]
    ]
    why: Required[str]
    remedy: Required[str]
    pid: Annotated[int, Field(description="in the session; absent: of the session as a whole")]
    command: str


class CanMoveAnswer(RowsAnswer, total=False):
    movable: Annotated[bool, Field(description="nothing blocks")]
    level: Annotated[str, Field(description="that it was started at: plain, contained, movable")]
    findings: Annotated[list[FindingRow], Field(description="the worst first")]
    processes: Annotated[int, Field(description="how many there are")]
    frozen_ms: Annotated[int, Field(description="for about so long it would be frozen")]
    bytes: Annotated[int, Field(description="of memory that would be saved")]


class CheckpointAnswer(RefusableAnswer, total=False):
    checkpoint: Annotated[str, Field(description="its id, for `restore`")]
    session: str
    state: StateName
    kind: Annotated[str, Field(description="memory: its processes; application: its own state")]
    frozen_ms: Annotated[int, Field(description="for so long it was frozen")]
    bytes: int


class ResetRow(TypedDict):
    process: str
    pid: Annotated[int, Field(description="as programs in the session see it")]
    local: str
    peer: str


class RestoreAnswer(RefusableAnswer, total=False):
    session: str
    id: str
    state: StateName
    epoch: int
    checkpoint: str
    kind: Annotated[str, Field(description="memory: its processes; application: its own state")]
    inputs_lost: Annotated[
        int, Field(description="recorded inputs newer than the checkpoint: not part of it")
    ]
    resets: Annotated[
        list[ResetRow], Field(description="connections that were cut: connect them again")
    ]
    left_out: Annotated[int, Field(description="more of these")]


class TypedAnswer(RefusableAnswer, total=False):
    typed: bool
    held: Annotated[
        str,
        Field(description="its Enter waits for this approval: nothing has run; see list_approvals"),
    ]
    cursor: Annotated[int, Field(description="what is printed in answer comes behind it")]


class TurnAnswer(RefusableAnswer, total=False):
    yours: bool
    holder: str
    waiting: list[str]
    policy: str


class StartAnswer(RefusableAnswer, total=False):
    session: str
    id: str
    state: StateName
    existed: Annotated[bool, Field(description="a session of this name was there already")]


class EndAnswer(RefusableAnswer, total=False):
    session: str
    ending: dict[str, Any]


class SignalAnswer(RefusableAnswer, total=False):
    session: str
    sent: str
