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
ACTORS = "actors, envelopes and the turn"
JOURNAL = "the journal and its proofs"
GATE = "the gate and provenance"
RELAY = "the relay and remote operators"
MOVE = "checkpoint, migration and fork"
GROUPS = "groups of sessions"
REAPING = "reaping of idle sessions"
AUTONOMY = "structured actions of agents"


def _in(directory_and_file: str, *names: str) -> tuple[str, ...]:
    return tuple(f"tests/{directory_and_file}.py::{name}" for name in names)


REQUIREMENTS: tuple[Requirement, ...] = (
    # -- S. The session as an object ----------------------------------------------------------
    Requirement(
        "S1",
        "Nobody owns a session: it ends by its own end or by a permitted `end`, never because a "
        "client, its creator, a login or the daemon went away.",
        tests=(
            *_in(
                "faults/test_creator_gone",
                "test_killing_the_creators_terminal_shell_and_login_changes_nothing",
            ),
            *_in(
                "faults/test_descriptors",
                "test_a_hundred_sessions_and_attachments_leave_no_descriptor_zombie_or_group",
            ),
            *_in(
                "faults/test_endings",
                "test_the_end_of_the_main_process_while_no_daemon_runs_is_known_later",
                "test_sessions_of_a_killed_keeper_end_and_are_buried_as_lost",
                "test_a_stale_socket_and_a_stale_lock_are_no_obstacle",
                "test_a_second_up_says_so_and_disturbs_nothing",
            ),
            *_in(
                "faults/test_storage",
                "test_a_start_that_fails_at_its_last_step_leaves_the_daemon_and_nothing_else",
                "test_a_full_disk_refuses_new_sessions_and_keeps_the_living_and_their_ends",
                "test_a_read_only_state_directory_refuses_new_sessions_and_spares_the_living",
            ),
            *_in(
                "process/test_attach",
                "test_keys_typed_while_the_daemon_dies_arrive_once_and_in_order",
            ),
            *_in(
                "faults/test_daemon_kills",
                "test_fifty_kills_of_the_daemon_lose_and_repeat_nothing",
            ),
            *_in(
                "faults/test_crash_points",
                "test_a_start_cut_off_by_a_kill_leaves_a_whole_session_or_none",
                "test_an_end_cut_off_by_a_kill_is_still_recorded_truly",
                "test_an_input_cut_off_by_a_kill_is_typed_once_or_known_not_to_be",
                "test_output_cut_off_by_a_kill_is_in_the_ring_once",
                "test_a_daemon_killed_twice_while_it_starts_carries_on_at_the_third",
            ),
            *_in(
                "process/test_cli",
                "test_daemon_restart_replaces_the_daemon_and_nothing_else",
                "test_down_is_refused_while_sessions_live_and_then_leaves_nothing",
            ),
        ),
        files=("keeper/__main__.py", "cli/starting.py", "core/lifecycle.py"),
    ),
    Requirement(
        "S2",
        "A session's id is derived from its own key and names it for as long as there is memory of "
        "it, whatever client, daemon or transport is used.",
        tests=(
            *_in(
                "faults/test_endings",
                "test_killed_sessions_stay_killed_with_their_true_status",
            ),
            *_in(
                "process/test_continuity",
                "test_an_id_is_derived_from_the_sessions_own_key_and_outlives_daemons",
                "test_a_killed_client_is_replaced_by_another_kind_that_knows_only_the_id",
            ),
        ),
        files=("model/ids.py", "host/store.py", "host/registry.py"),
    ),
    Requirement(
        "S3",
        "Any number of operators attach, leave and come back; the execution is not restarted or "
        "disturbed, and its pids stay.",
        tests=(
            *_in(
                "faults/test_creator_gone",
                "test_killing_the_creators_terminal_shell_and_login_changes_nothing",
            ),
            *_in(
                "faults/test_descriptors",
                "test_a_hundred_sessions_and_attachments_leave_no_descriptor_zombie_or_group",
            ),
            *_in(
                "faults/test_slow_clients",
                "test_operators_that_leave_while_they_attach_leave_no_seat_behind",
                "test_an_operator_that_asks_and_never_reads_costs_bounded_memory",
                "test_a_reader_that_never_reads_costs_bounded_memory_and_no_speed",
                "test_a_stopped_client_gets_a_correct_screen_when_it_goes_on",
                "test_a_hundred_observers_of_a_flood_do_not_hold_up_another_operators_keys",
            ),
            *_in(
                "faults/test_two_users",
                "test_users_cannot_see_or_touch_each_others_sessions",
                "test_files_and_fifos_of_a_root_host_tell_other_users_nothing",
                "test_the_bells_can_be_reached_by_their_users_and_listed_by_nobody",
            ),
            *_in(
                "process/test_attach",
                "test_what_is_typed_runs_in_the_session_and_detaching_leaves_it",
            ),
            *_in(
                "process/test_continuity",
                "test_a_killed_client_is_replaced_by_another_kind_that_knows_only_the_id",
            ),
            *_in(
                "faults/test_daemon_kills",
                "test_fifty_kills_of_the_daemon_lose_and_repeat_nothing",
            ),
            *_in(
                "faults/test_crash_points",
                "test_a_frame_half_sent_to_a_daemon_that_dies_is_not_applied",
            ),
            *_in(
                "faults/test_bad_input",
                "test_a_stranger_is_told_why_and_shown_the_door",
                "test_a_wrong_request_gets_its_typed_error_and_the_connection_goes_on",
                "test_a_message_of_the_wrong_shape_ends_the_connection_with_a_reason",
                "test_an_id_beyond_64_bits_or_negative_is_survived",
                "test_clients_that_leave_in_the_middle_of_a_frame_are_forgotten",
                "test_a_hundred_thousand_frames_at_once_are_answered_and_hold_nobody_up",
                "test_a_thousand_mutated_frames_do_not_move_the_daemon",
            ),
        ),
        files=("core/attachment.py", "host/channels.py", "cli/terminal.py"),
    ),
    Requirement(
        "S4",
        "A client killed at any instant is replaced by another of any kind that knows nothing but "
        "the session's id.",
        tests=(
            *_in(
                "process/test_continuity",
                "test_a_killed_client_is_replaced_by_another_kind_that_knows_only_the_id",
            ),
        ),
        files=("host/operator.py", "host/channels.py", "wire/messages.py"),
    ),
    Requirement(
        "S5",
        "One execution, many views; building one is bounded work, however long the session ran.",
        tests=(
            *_in(
                "faults/test_slow_clients",
                "test_a_stopped_client_gets_a_correct_screen_when_it_goes_on",
            ),
            *_in(
                "process/test_attach",
                "test_coming_back_shows_the_very_screen_with_its_modes",
            ),
            *_in(
                "process/test_continuity",
                "test_each_kind_of_client_gets_its_own_view_of_one_execution",
            ),
            *_in(
                "properties/test_screen_roundtrip",
                "test_any_output_round_trips",
                "test_both_go_on_alike_after_it",
                "test_a_real_programs_screen_round_trips",
            ),
            *_in(
                "properties/test_flood",
                "test_a_view_that_skips_shows_what_one_that_does_not_shows",
            ),
            *_in(
                "unit/test_screen",
                "test_while_the_alternate_screen_is_shown_the_primary_one_comes_along",
                "test_text_is_what_is_seen_and_scrollback_what_was",
                "test_a_screen_is_bounded_and_its_memory_comes_back",
            ),
        ),
        files=("host/view.py", "adapters/ghostty_snapshot.py"),
    ),
    Requirement(
        "S6",
        "The live graph (processes, terminal, files, sockets) is answered from the kernel, never "
        "from memory of what was launched.",
        tests=(
            *_in(
                "process/test_observation_graph",
                "test_who_listens_on_a_port_is_answered_with_the_process_and_its_parent",
                "test_sockets_of_every_family_are_named",
                "test_open_files_carry_mode_offset_and_locks",
                "test_the_ends_of_a_pipe_are_the_same_pipe",
                "test_the_terminal_and_the_lineage_are_the_kernels",
                "test_an_orphan_that_keeps_the_kernel_session_stays_in_the_graph",
            ),
            *_in(
                "privileged/test_observation_contained",
                "test_processes_carry_both_numbers_and_orphans_stay",
            ),
            *_in(
                "process/test_cli",
                "test_graph_shows_the_processes_of_now",
            ),
        ),
        files=("adapters/proc.py", "adapters/sock_diag.py"),
    ),
    Requirement(
        "S7",
        "Working, at the prompt, waiting for input, waiting for a secret, stopped, halted and "
        "ended are told apart from kernel evidence.",
        tests=(
            *_in(
                "unit/test_waiting_rules",
                "test_the_evidence_shows_the_state",
                "test_every_rule_is_the_answer_to_some_case",
            ),
            *_in(
                "properties/test_waiting_total",
                "test_there_is_always_a_state_and_a_reason",
            ),
            *_in(
                "process/test_observation",
                "test_a_shell_that_waits_for_a_command_is_at_its_prompt",
                "test_a_builtin_of_the_shell_that_reads_is_told_from_its_prompt",
                "test_programs_are_seen_to_wait_for_what_they_wait_for",
                "test_a_stopped_foreground_program_is_stopped_and_goes_on",
                "test_an_ended_session_is_ended_before_and_after_it_is_reaped",
            ),
            *_in(
                "privileged/test_observation_contained",
                "test_a_frozen_session_is_halted_and_back_where_it_was",
            ),
            *_in(
                "faults/test_crash_points",
                "test_a_session_shown_as_ended_always_has_its_ending",
            ),
            *_in(
                "process/test_cli",
                "test_wait_tells_states_apart_and_the_end_with_its_status",
            ),
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
        tests=(
            *_in(
                "faults/test_two_users",
                "test_users_cannot_see_or_touch_each_others_sessions",
            ),
        ),
        open=f"{ACTORS}; until then authority is the unix user's",
        files=("host/registry.py",),
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
            *_in(
                "faults/test_endings",
                "test_killed_sessions_stay_killed_with_their_true_status",
                "test_the_end_of_the_main_process_while_no_daemon_runs_is_known_later",
                "test_sessions_of_a_killed_keeper_end_and_are_buried_as_lost",
            ),
            *_in(
                "faults/test_storage",
                "test_a_full_disk_refuses_new_sessions_and_keeps_the_living_and_their_ends",
                "test_an_end_on_a_full_disk_outlives_the_daemon_that_saw_it",
            ),
            *_in(
                "process/test_launch",
                "test_an_end_by_signal_is_told_from_an_exit_with_the_same_number",
            ),
            *_in(
                "privileged/test_launch_contained",
                "test_an_end_by_signal_is_told_from_an_exit_with_the_same_number",
            ),
            *_in(
                "properties/test_session_core",
                "test_nothing_leads_out_of_the_ended_phase",
            ),
            *_in(
                "process/test_cli",
                "test_a_session_is_listed_shown_and_ended_with_its_true_ending",
            ),
            *_in(
                "faults/test_crash_points",
                "test_an_end_cut_off_by_a_kill_is_still_recorded_truly",
                "test_a_session_shown_as_ended_always_has_its_ending",
            ),
        ),
        files=("keeper/reaping.py", "native/hold_init.c", "host/store.py"),
    ),
    # -- M. Failure modes ---------------------------------------------------------------------
    Requirement(
        "M1",
        "A client that disconnects loses nothing: the view comes back, and the output of the gap "
        "is held up to a named bound; what rolled off is counted.",
        tests=(
            *_in(
                "faults/test_slow_clients",
                "test_a_reader_that_never_reads_costs_bounded_memory_and_no_speed",
                "test_a_stopped_client_gets_a_correct_screen_when_it_goes_on",
            ),
            *_in(
                "process/test_attach",
                "test_keys_typed_while_the_daemon_dies_arrive_once_and_in_order",
                "test_output_of_a_replaced_daemon_continues_without_a_gap",
            ),
            *_in(
                "unit/test_ring",
                "test_what_was_printed_is_at_its_offset_until_it_rolls_off",
                "test_a_daemon_killed_between_conduit_and_ring_loses_nothing",
                "test_a_daemon_killed_before_noting_the_head_loses_nothing",
            ),
            *_in(
                "process/test_cli",
                "test_tail_tells_of_output_that_rolled_off",
                "test_tail_follows_across_a_daemon_restart_until_the_end",
            ),
            *_in(
                "faults/test_crash_points",
                "test_output_cut_off_by_a_kill_is_in_the_ring_once",
            ),
            *_in(
                "faults/test_daemon_kills",
                "test_fifty_kills_of_the_daemon_lose_and_repeat_nothing",
            ),
            *_in("faults/test_mutants", "test_the_judge_of_output_catches_a_ring_that_loses_bytes"),
        ),
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
        tests=(
            *_in(
                "unit/test_ring",
                "test_a_new_daemon_types_what_the_old_one_took_and_did_not_type",
                "test_a_kill_while_staging_is_settled_by_the_length_of_the_pipe",
                "test_inputs_reach_the_terminal_in_order_and_are_remembered",
            ),
            *_in(
                "faults/test_crash_points",
                "test_an_input_cut_off_by_a_kill_is_typed_once_or_known_not_to_be",
            ),
            *_in(
                "faults/test_daemon_kills",
                "test_fifty_kills_of_the_daemon_lose_and_repeat_nothing",
            ),
            *_in(
                "process/test_cli",
                "test_exec_tells_the_truth_when_the_daemon_is_replaced",
            ),
            *_in("faults/test_mutants", "test_the_judge_of_inputs_catches_a_ledger_that_forgets"),
        ),
        open=f"{JOURNAL}: a report of what was in flight",
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
