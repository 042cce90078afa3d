"""Every promise of the product: its id, its sentence, and the tests that show it or what it waits
for. `test_manifest.py` keeps this true in both directions.

A requirement has `tests` (pytest ids, without parameters), or `open` (what will bring it), or both
when a part of it stands and a part does not. `files` are the sources to read first. The table of
guarantees in ARCHITECTURE.md is made from this: run `make diagrams` after a change.
"""

from __future__ import annotations

from typing import NamedTuple


class Requirement(NamedTuple):
    """One promise."""

    id: str
    promise: str
    tests: tuple[str, ...] = ()
    open: str = ""
    files: tuple[str, ...] = ()  # below src/holdfast


# What open promises wait for.
SESSION = "the live session on one machine"
ACTORS = "actors, envelopes and the turn"
JOURNAL = "the journal and its proofs"
GATE = "the gate and provenance"
RELAY = "the relay and remote operators"
MOVE = "checkpoint, migration and fork"
GROUPS = "groups of sessions"
REAPING = "reaping of idle sessions"
AUTONOMY = "structured actions of agents"

_LAUNCH = "tests/process/test_launch.py::"
_CONTAINED = "tests/privileged/test_launch_contained.py::"
_OBSERVED = "tests/process/test_observation.py::"
_OBSERVED_CONTAINED = "tests/privileged/test_observation_contained.py::"
_GRAPH = "tests/process/test_observation_graph.py::"
_SCREEN = "tests/unit/test_screen.py::"
_ROUNDTRIP = "tests/properties/test_screen_roundtrip.py::"
_RULES = "tests/unit/test_waiting_rules.py::"
_TOTAL = "tests/properties/test_waiting_total.py::"

REQUIREMENTS: tuple[Requirement, ...] = (
    # -- S. The session as an object ----------------------------------------------------------
    Requirement(
        "S1",
        "Nobody owns a session: it ends by its own end or by a permitted `end`, never because a "
        "client, its creator, a login or the daemon went away.",
        open=SESSION,
        files=("keeper/__main__.py", "cli/starting.py", "core/lifecycle.py"),
    ),
    Requirement(
        "S2",
        "A session's id is derived from its own key and names it for as long as there is memory of "
        "it, whatever client, daemon or transport is used.",
        open=SESSION,
        files=("model/ids.py", "host/store.py", "host/registry.py"),
    ),
    Requirement(
        "S3",
        "Any number of operators attach, leave and come back; the execution is not restarted or "
        "disturbed, and its pids stay.",
        open=SESSION,
        files=("core/attachment.py", "host/channels.py", "cli/terminal.py"),
    ),
    Requirement(
        "S4",
        "A client killed at any instant is replaced by another of any kind that knows nothing but "
        "the session's id.",
        open=SESSION,
        files=("host/operator.py", "host/channels.py", "wire/messages.py"),
    ),
    Requirement(
        "S5",
        "One execution, many views; building one is bounded work, however long the session ran.",
        tests=(
            _ROUNDTRIP + "test_any_output_round_trips",
            _ROUNDTRIP + "test_both_go_on_alike_after_it",
            _ROUNDTRIP + "test_a_real_programs_screen_round_trips",
            _SCREEN + "test_while_the_alternate_screen_is_shown_the_primary_one_comes_along",
            _SCREEN + "test_text_is_what_is_seen_and_scrollback_what_was",
            _SCREEN + "test_a_screen_is_bounded_and_its_memory_comes_back",
        ),
        open=SESSION,
        files=("host/view.py", "adapters/ghostty_snapshot.py"),
    ),
    Requirement(
        "S6",
        "The live graph (processes, terminal, files, sockets) is answered from the kernel, never "
        "from memory of what was launched.",
        tests=(
            _GRAPH + "test_who_listens_on_a_port_is_answered_with_the_process_and_its_parent",
            _GRAPH + "test_sockets_of_every_family_are_named",
            _GRAPH + "test_open_files_carry_mode_offset_and_locks",
            _GRAPH + "test_the_ends_of_a_pipe_are_the_same_pipe",
            _GRAPH + "test_the_terminal_and_the_lineage_are_the_kernels",
            _GRAPH + "test_an_orphan_that_keeps_the_kernel_session_stays_in_the_graph",
            _OBSERVED_CONTAINED + "test_processes_carry_both_numbers_and_orphans_stay",
        ),
        files=("adapters/proc.py", "adapters/sock_diag.py"),
    ),
    Requirement(
        "S7",
        "Working, at the prompt, waiting for input, waiting for a secret, stopped, halted and "
        "ended are told apart from kernel evidence.",
        tests=(
            _RULES + "test_the_evidence_shows_the_state",
            _RULES + "test_every_rule_is_the_answer_to_some_case",
            _TOTAL + "test_there_is_always_a_state_and_a_reason",
            _OBSERVED + "test_a_shell_that_waits_for_a_command_is_at_its_prompt",
            _OBSERVED + "test_a_builtin_of_the_shell_that_reads_is_told_from_its_prompt",
            _OBSERVED + "test_programs_are_seen_to_wait_for_what_they_wait_for",
            _OBSERVED + "test_a_stopped_foreground_program_is_stopped_and_goes_on",
            _OBSERVED + "test_an_ended_session_is_ended_before_and_after_it_is_reaped",
            _OBSERVED_CONTAINED + "test_a_frozen_session_is_halted_and_back_where_it_was",
        ),
        files=("core/waiting.py", "adapters/proc_wait.py", "host/watching.py"),
    ),
    # -- A. Many actors, one state ------------------------------------------------------------
    Requirement(
        "A1",
        "Every input of every actor comes through one ingest: one order, one attribution.",
        open=ACTORS,
    ),
    Requirement(
        "A2",
        "What an actor may do is judged on the host at the moment of the input, per actor.",
        open=ACTORS,
    ),
    Requirement(
        "A3",
        "Inputs have one total order and carry their actor; two writers' keystrokes never mix.",
        open=ACTORS,
    ),
    Requirement(
        "A4",
        "The turn is requested, granted, yielded, handed off, revoked and expires; who is next is "
        "policy.",
        open=ACTORS,
    ),
    Requirement(
        "A5",
        "A permitted operator halts the tree and takes the turn from a holder that does not "
        "cooperate; later writes of the loser are refused.",
        open=ACTORS,
    ),
    Requirement(
        "A6",
        "Whoever takes the turn over is shown what changed, and is judged again against it.",
        open=GATE,
    ),
    Requirement(
        "A7",
        "An effect staged by one actor and set off by another is recorded with both.",
        open=GATE,
    ),
    Requirement(
        "A8",
        "Before an effect commits, a replaceable policy may allow, refuse or hold it.",
        open=GATE,
    ),
    Requirement(
        "A9",
        "An ended session leaves a tombstone with its true exit status, and its id never lives "
        "again.",
        tests=(
            _LAUNCH + "test_an_end_by_signal_is_told_from_an_exit_with_the_same_number",
            _CONTAINED + "test_an_end_by_signal_is_told_from_an_exit_with_the_same_number",
        ),
        open=SESSION,
        files=("keeper/reaping.py", "native/hold_init.c", "host/store.py"),
    ),
    # -- M. Failure modes ---------------------------------------------------------------------
    Requirement(
        "M1",
        "A client that disconnects loses nothing: the view comes back, and the output of the gap "
        "is held up to a named bound; what rolled off is counted.",
        open=SESSION,
        files=("adapters/ring.py", "host/channels.py"),
    ),
    Requirement(
        "M2",
        "When a host dies, identity and durable state survive; where there is a checkpoint, "
        "memory, tree and descriptors too, in the next epoch.",
        open=MOVE,
    ),
    Requirement(
        "M3",
        "A lost connection to a peer outside leaves local state consistent and is listed.",
        open=MOVE,
    ),
    Requirement(
        "M4",
        "Branches share a copy-on-write base and diverge; their lineage can be verified.",
        open=MOVE,
    ),
    Requirement(
        "M5",
        "No recovery replays a journal, so replay cannot diverge.",
        open=JOURNAL,
    ),
    Requirement(
        "M6",
        "After a crash an input is known as taken, or reported as unknown; never as done when it "
        "may not be, and never applied twice.",
        open=SESSION,
        files=("adapters/ledger.py", "core/intake.py", "sdk/client.py"),
    ),
    Requirement(
        "M7",
        "Conflicting actors see one state, ordered and attributed; refused writes are recorded.",
        open=ACTORS,
    ),
    Requirement(
        "M8",
        "Authority is judged at the input against the current state, with the originator bound.",
        open=GATE,
    ),
    Requirement(
        "M9",
        "Abandoned sessions are reclaimed by a discipline that is on by default; a session doing "
        "work is not idle.",
        open=REAPING,
    ),
    # -- F. Fencing and recovery --------------------------------------------------------------
    Requirement(
        "F1",
        "At most one incarnation of a session can be attached to, also in a partition.",
        open=MOVE,
    ),
    Requirement(
        "F2",
        "Leases carry a rising token; a session chooses to be pinned (default) or re-homeable.",
        open=MOVE,
    ),
    Requirement(
        "F3",
        "A session is re-homed only after its old lease is known to have expired; old epochs are "
        "refused everywhere.",
        open=MOVE,
    ),
    Requirement(
        "F4", "A session's own programs can read its fencing token, to pass it on.", open=MOVE
    ),
    Requirement(
        "F5", "Losing a relay stops no pinned session and cuts off no local operator.", open=RELAY
    ),
    # -- N. Lineage, proofs, groups -----------------------------------------------------------
    Requirement(
        "N1",
        "Migration has six phases, each of which can fail back to a running source.",
        open=MOVE,
    ),
    Requirement("N2", "A target is named, or chosen by what it can do.", open=MOVE),
    Requirement(
        "N3", "Where a session is between two hosts can be seen at every moment.", open=MOVE
    ),
    Requirement(
        "N4",
        "A standby group promotes its furthest member under the fence and names what was accepted "
        "after its last sync.",
        open=GROUPS,
    ),
    Requirement(
        "N5",
        "A replica group respawns members elsewhere with the same derived identity.",
        open=GROUPS,
    ),
    Requirement(
        "N6",
        "A fork group branches from one point, with a record anyone can recompute.",
        open=GROUPS,
    ),
    Requirement(
        "N7",
        "A 36-byte witness shows a range of the chain intact without the whole log.",
        open=JOURNAL,
    ),
    Requirement(
        "N8",
        "A chain is continuous, forked, unverifiable or migrated, and says which.",
        open=JOURNAL,
    ),
    Requirement(
        "N9",
        "A break is a signed record and a new entity with lineage, never papered over.",
        open=JOURNAL,
    ),
    # -- R. Reachability and trust ------------------------------------------------------------
    Requirement("R1", "A host dials out and opens no inbound port.", open=RELAY),
    Requirement("R2", "Many machines and sessions are addressed from one place.", open=RELAY),
    Requirement(
        "R3",
        "Attaching needs an authenticated actor authorised for this session; knowing an id "
        "entitles to nothing.",
        open=RELAY,
    ),
    Requirement(
        "R4", "A compromised relay can deny service; it cannot read, forge or strip.", open=RELAY
    ),
    Requirement("R5", "Roles: admin, execute, read, approve-only.", open=ACTORS),
    Requirement(
        "R6",
        "Clients: command line, web, Python, MCP, chat, ssh and HTTP.",
        open=f"{RELAY}; the command line and the blocking Python client are here",
    ),
    # -- G. Safe autonomy ---------------------------------------------------------------------
    Requirement(
        "G1", "An agent may submit a structured action, validated before it runs.", open=AUTONOMY
    ),
    Requirement("G2", "Each action leaves a full trace.", open=AUTONOMY),
    Requirement(
        "G3", "Each action is scored on validity, success and unintended effects.", open=AUTONOMY
    ),
    Requirement("G4", "Errors are for machines too, and say how to recover.", open=AUTONOMY),
    Requirement("G5", "Policy can use an actor's measured score.", open=AUTONOMY),
)

BY_ID = {requirement.id: requirement for requirement in REQUIREMENTS}
