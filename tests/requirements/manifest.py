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
                "test_a_child_that_outlives_its_daemon_does_not_confuse_the_keeper",
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
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
            ),
            *_in(
                "process/test_actors_cli",
                "test_who_created_a_session_has_nothing_special_in_it",
            ),
            *_in(
                "process/test_key_loops",
                "test_single_keys_typed_fast_while_the_daemon_dies_arrive_once_and_in_order",
            ),
            *_in(
                "faults/test_hasty_writers",
                "test_an_input_of_a_client_that_is_gone_is_taken_under_its_own_turn",
            ),
            *_in(
                "privileged/test_leases",
                "test_a_new_daemon_carries_the_lease_on_in_the_same_incarnation",
            ),
            *_in(
                "process/test_own_relay",
                "test_a_killed_daemon_leaves_the_relay_and_comes_back_to_it",
            ),
            *_in(
                "process/test_reach",
                "test_a_daemon_that_dies_is_found_again_from_afar",
            ),
        ),
        files=("keeper/__main__.py", "cli/starting.py", "core/lifecycle.py", "core/authority.py"),
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
            *_in(
                "faults/test_authority_bad_input",
                "test_a_claim_counts_only_with_this_actors_signature_for_this_connection",
                "test_nobody_becomes_another_after_it_acted",
                "test_garbage_in_a_message_about_authority_harms_nobody",
            ),
        ),
        files=("core/attachment.py", "host/channels.py", "cli/terminal.py"),
    ),
    Requirement(
        "S4",
        "A client killed at any instant is replaced by another of any kind that knows nothing "
        "but the session's id.",
        tests=(
            *_in(
                "process/test_continuity",
                "test_a_killed_client_is_replaced_by_another_kind_that_knows_only_the_id",
            ),
            *_in(
                "process/test_own_relay",
                "test_up_prints_a_link_by_which_another_device_lists_and_attaches",
            ),
            *_in(
                "process/test_reach",
                "test_a_terminal_elsewhere_is_a_terminal_here",
                "test_a_relay_that_dies_costs_nothing_but_the_wait",
                "test_a_daemon_that_dies_is_found_again_from_afar",
            ),
            *_in(
                "faults/test_reach_faults",
                "test_a_storm_over_relays_and_nats_loses_doubles_and_misattributes_no_input",
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
        tests=(
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
            ),
            *_in(
                "process/test_halt_cli",
                "test_input_to_a_halted_session_is_refused_and_not_typed_later",
            ),
            *_in(
                "process/test_turn_cli",
                "test_input_of_others_is_refused_naming_the_holder_and_how_to_ask",
            ),
            *_in(
                "faults/test_authority_bad_input",
                "test_a_claim_counts_only_with_this_actors_signature_for_this_connection",
                "test_nobody_becomes_another_after_it_acted",
                "test_an_actor_that_uses_anothers_operator_id_does_not_disturb_its_numbers",
            ),
            *_in(
                "process/test_reach",
                "test_what_is_done_from_afar_is_attributed_to_the_device",
            ),
        ),
        files=("host/live.py", "core/session.py", "host/typist.py"),
    ),
    Requirement(
        "A2",
        "What an actor may do is judged on the host at the moment of the input, per actor.",
        tests=(
            *_in(
                "faults/test_two_users",
                "test_users_cannot_see_or_touch_each_others_sessions",
            ),
            *_in(
                "faults/test_journal_crash_points",
                "test_a_revocation_cut_off_by_a_kill_is_in_force_and_recorded",
            ),
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
            ),
            *_in(
                "process/test_actors_cli",
                "test_the_narrowest_envelope_counts",
                "test_what_an_envelope_does_not_allow_is_refused_and_not_done",
                "test_nobody_grants_more_than_it_has",
                "test_the_last_admin_cannot_be_removed_by_accident",
                "test_a_rate_is_kept_to",
                "test_a_revocation_counts_at_once_for_a_connected_operator",
                "test_narrowing_counts_at_once_for_a_connected_operator",
                "test_a_revoked_actor_can_do_nothing_also_while_connected",
                "test_an_envelope_ends_when_it_expires_and_says_so",
            ),
            *_in(
                "process/test_halt_cli",
                "test_halt_needs_its_right",
            ),
            *_in(
                "properties/test_authority",
                "test_the_narrowest_scope_wins_and_labels_meet",
                "test_time_never_widens_whichever_way_the_clock_goes",
                "test_an_allowance_says_what_would_be_said_until_it_ends",
                "test_grants_stay_within_the_grantors_and_an_admin_is_always_left",
            ),
            *_in(
                "unit/test_authority",
                "test_without_an_envelope_an_actor_may_do_nothing",
                "test_an_expired_envelope_does_not_fall_through_to_a_wider_one",
                "test_a_clock_set_back_brings_no_expired_envelope_to_life",
                "test_a_change_counts_at_once_and_raises_the_version",
            ),
            *_in(
                "faults/test_authority_bad_input",
                "test_an_expired_envelope_ends_the_turn_and_every_right",
                "test_a_rate_holds_over_all_connections_of_an_actor",
                "test_a_clock_set_back_revives_no_right_and_disorders_no_journal",
            ),
            *_in(
                "process/test_admission_cli",
                "test_only_who_may_grant_there_invites_and_nobody_to_more_than_it_has",
                "test_an_agent_works_by_what_it_was_handed_until_its_giver_is_revoked",
                "test_a_grant_ends_by_itself_for_who_is_attached",
                "test_who_handed_on_takes_it_back_alone",
                "test_what_is_handed_on_is_never_more",
                "test_another_unix_user_comes_into_one_session_by_a_grant_and_into_no_other",
            ),
            *_in(
                "unit/test_admission",
                "test_nobody_invites_to_more_than_it_has",
                "test_a_grant_handed_on_brings_in_somebody_the_host_never_met",
                "test_a_chain_that_ended_stays_ended_when_the_clock_is_set_back",
                "test_a_revoked_parent_takes_its_descendants_with_it_at_once",
                "test_who_handed_on_takes_back_that_and_nothing_else",
                "test_with_a_device_go_the_invites_it_made_and_who_came_by_them",
            ),
        ),
        files=("core/authority.py", "core/envelope_book.py", "host/actors.py", "host/registry.py"),
    ),
    Requirement(
        "A3",
        "Inputs have one total order and carry their actor; two writers' keystrokes never mix.",
        tests=(
            *_in(
                "faults/test_journal_crash_points",
                "test_a_seizure_cut_off_by_a_kill_happened_or_did_not",
            ),
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
                "test_the_judge_finds_nothing_wrong_with_a_careful_build",
                "test_the_judge_catches_a_careless_build",
                "test_input_that_waits_for_the_program_is_refused_when_the_turn_is_taken",
                "test_the_judge_catches_a_build_that_types_what_waited",
            ),
            *_in(
                "process/test_attach_turn",
                "test_the_first_key_asks_and_an_idle_holder_gives_way_without_a_word",
                "test_the_holder_sees_who_asks_and_one_key_grants",
            ),
            *_in(
                "process/test_blame_export",
                "test_every_line_is_traced_to_the_actor_whose_command_made_it",
            ),
            *_in(
                "process/test_log_cli",
                "test_each_command_is_in_the_log_once_with_the_actor_who_ran_it",
            ),
            *_in(
                "process/test_turn_cli",
                "test_input_of_others_is_refused_naming_the_holder_and_how_to_ask",
            ),
            *_in(
                "process/test_typed_ahead",
                "test_a_command_typed_before_its_prompt_is_of_whoever_typed_it",
            ),
            *_in(
                "properties/test_turn_machine",
                "test_the_promises_hold_on_long_walks_that_take_every_step_of_the_table",
                "test_the_properties_catch_a_broken_turn",
            ),
            *_in(
                "faults/test_hasty_writers",
                "test_an_input_of_a_client_that_is_gone_is_taken_under_its_own_turn",
            ),
        ),
        files=("core/session.py", "core/turn.py", "host/typist.py"),
    ),
    Requirement(
        "A4",
        "The turn is requested, granted, yielded, handed off, revoked and expires; who is next "
        "is policy.",
        tests=(
            *_in(
                "process/test_attach_turn",
                "test_the_first_key_asks_and_an_idle_holder_gives_way_without_a_word",
                "test_the_holder_sees_who_asks_and_one_key_grants",
            ),
            *_in(
                "process/test_turn_cli",
                "test_a_turn_is_asked_for_granted_handed_off_and_yielded",
                "test_who_waits_can_be_chosen_and_can_withdraw",
                "test_only_the_holder_gives_the_turn",
                "test_a_turn_is_revoked_by_who_may_seize",
                "test_a_free_turn_is_taken_by_writing_and_free_again_after",
                "test_waiting_goes_on_after_a_daemon_restart",
            ),
            *_in(
                "properties/test_turn_machine",
                "test_the_promises_hold_on_long_walks_that_take_every_step_of_the_table",
                "test_the_properties_catch_a_broken_turn",
                "test_the_table_has_exactly_the_transitions_that_can_happen",
            ),
            *_in(
                "unit/test_turn",
                "test_an_idle_holder_loses_the_turn_when_the_policy_says",
            ),
        ),
        files=("core/turn_table.py", "core/turn.py", "core/turn_policy.py"),
    ),
    Requirement(
        "A5",
        "A permitted operator halts the tree and takes the turn from a holder that does not "
        "cooperate; later writes of the loser are refused.",
        tests=(
            *_in(
                "faults/test_journal_crash_points",
                "test_a_halt_cut_off_by_a_kill_is_completed_and_can_be_ended",
                "test_a_resume_cut_off_by_a_kill_can_be_asked_for_again",
                "test_a_leaf_frozen_by_a_daemon_that_died_is_thawed_by_the_next",
            ),
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
                "test_input_that_waits_for_the_program_is_refused_when_the_turn_is_taken",
                "test_the_judge_catches_a_build_that_types_what_waited",
            ),
            *_in(
                "privileged/test_halting",
                "test_two_hundred_busy_processes_are_halted",
                "test_a_tree_that_works_against_it_is_halted",
                "test_a_process_that_is_never_there_when_looked_at_is_halted",
                "test_a_process_deaf_to_every_signal_it_may_ignore_is_halted",
                "test_a_write_under_way_is_completed_and_not_called_frozen_before",
                "test_one_actors_jobs_are_halted_while_the_shell_and_the_others_go_on",
            ),
            *_in(
                "process/test_attach_turn",
                "test_a_seizure_from_the_terminal_takes_the_turn_and_the_loser_is_told",
            ),
            *_in(
                "process/test_halt_cli",
                "test_what_does_not_listen_is_frozen_all_the_same",
                "test_a_halt_survives_the_daemon_and_can_be_resumed_after",
                "test_input_to_a_halted_session_is_refused_and_not_typed_later",
                "test_halt_needs_its_right",
                "test_only_what_one_actor_started_is_frozen",
                "test_a_halt_that_was_not_confirmed_is_told_and_fails",
                "test_the_loser_of_a_seizure_with_halt_is_told_and_refused",
            ),
            *_in(
                "process/test_halting_plain",
                "test_two_hundred_busy_processes_are_halted",
                "test_a_tree_that_works_against_it_is_halted",
                "test_a_process_that_is_never_there_when_looked_at_is_halted",
                "test_a_process_deaf_to_every_signal_it_may_ignore_is_halted",
                "test_a_write_under_way_is_completed_and_not_called_frozen_before",
            ),
            *_in(
                "process/test_turn_cli",
                "test_the_turn_is_seized_from_a_holder_that_loops",
                "test_a_seizure_needs_the_right_and_tells_all_in_json",
            ),
            *_in(
                "properties/test_turn_machine",
                "test_the_promises_hold_on_long_walks_that_take_every_step_of_the_table",
                "test_the_properties_catch_a_broken_turn",
                "test_every_state_has_a_way_to_be_seized",
            ),
            *_in(
                "unit/test_turn",
                "test_a_seized_turn_stays_through_pauses_requests_and_a_lost_connection",
                "test_a_policy_that_fails_cannot_keep_anybody_from_seizing",
            ),
            *_in(
                "faults/test_authority_bad_input",
                "test_on_a_full_disk_nothing_is_typed_unrecorded_and_halting_still_works",
            ),
        ),
        files=("core/turn.py", "host/halts.py", "adapters/halting.py", "adapters/stopping.py"),
    ),
    Requirement(
        "A6",
        "Whoever takes the turn over is shown what changed, and is judged again against it.",
        tests=(
            *_in(
                "process/test_attach_turn",
                "test_a_seizure_from_the_terminal_takes_the_turn_and_the_loser_is_told",
            ),
            *_in(
                "process/test_shell_state",
                "test_each_kind_of_change_is_told_and_nothing_else",
                "test_each_kind_of_change_in_fish_is_told_and_nothing_else",
                "test_a_background_job_is_told_and_its_end_too",
            ),
            *_in(
                "process/test_turn_cli",
                "test_catchup_tells_what_others_did",
                "test_catchup_says_it_in_words_once",
                "test_sending_is_not_looking",
            ),
            *_in(
                "process/test_unsubmitted_line",
                "test_the_half_typed_text_is_told_and_stays_with_its_cursor",
            ),
            *_in(
                "properties/test_handoff_changes",
                "test_applied_to_the_earlier_state_the_changes_give_the_later_one",
            ),
        ),
        open=f"{GATE}: judging what others staged before it is set off",
        files=("host/handoffs.py", "core/handoff.py", "adapters/shell_state.py"),
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
            *_in(
                "process/test_discontinuity",
                "test_a_session_that_died_with_its_host_is_discontinued_by_a_signed_entry",
            ),
            *_in(
                "process/test_verify_cli",
                "test_after_host_death_it_is_discontinued_and_its_successor_says_whom_it_follows",
            ),
        ),
        files=("keeper/reaping.py", "native/hold_init.c", "host/store.py", "host/discontinuity.py"),
    ),
    # -- M. Failure modes ---------------------------------------------------------------------
    Requirement(
        "M1",
        "A client that disconnects loses nothing: the view comes back, and the output of the "
        "gap is held up to a named bound; what rolled off is counted.",
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
            *_in(
                "faults/test_mutants",
                "test_the_judge_of_output_catches_a_ring_that_loses_bytes",
            ),
            *_in(
                "process/test_key_loops",
                "test_single_keys_typed_fast_while_the_daemon_dies_arrive_once_and_in_order",
                "test_what_is_echoed_while_the_daemon_dies_is_shown_once",
            ),
            *_in(
                "faults/test_quiet_journals",
                "test_an_operator_that_comes_back_is_recorded_with_how_long_it_was_away",
            ),
            *_in(
                "properties/test_shared_output",
                "test_what_is_shown_is_what_was_printed",
            ),
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
        open=MOVE,
    ),
    Requirement(
        "M6",
        "After a crash an input is known as taken, or reported as unknown; never as done when "
        "it may not be, and never applied twice.",
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
            *_in(
                "faults/test_mutants",
                "test_the_judge_of_inputs_catches_a_ledger_that_forgets",
            ),
            *_in(
                "faults/test_journal_crash_points",
                "test_an_input_cut_off_by_a_kill_is_typed_and_attributed_once",
                "test_a_daemon_that_dies_while_it_carries_on_leaves_the_rest_to_the_next",
                "test_a_key_cut_off_by_a_kill_in_compiled_code_is_typed_and_attributed_once",
            ),
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
                "test_the_judge_finds_nothing_wrong_with_a_careful_build",
                "test_the_judge_catches_a_careless_build",
            ),
            *_in(
                "process/test_key_loops",
                "test_single_keys_typed_fast_while_the_daemon_dies_arrive_once_and_in_order",
            ),
            *_in(
                "faults/test_authority_bad_input",
                "test_an_actor_that_uses_anothers_operator_id_does_not_disturb_its_numbers",
                "test_a_replayed_input_is_answered_as_repeated_and_not_typed",
            ),
            *_in(
                "process/test_reach",
                "test_a_relay_that_dies_costs_nothing_but_the_wait",
                "test_a_daemon_that_dies_is_found_again_from_afar",
            ),
            *_in(
                "faults/test_reach_faults",
                "test_a_storm_over_relays_and_nats_loses_doubles_and_misattributes_no_input",
            ),
        ),
        files=("adapters/ledger.py", "core/intake.py", "host/journaling.py", "sdk/client.py"),
    ),
    Requirement(
        "M7",
        "Conflicting actors see one state, ordered and attributed; refused writes are recorded.",
        tests=(
            *_in(
                "process/test_attach_turn",
                "test_the_holder_sees_who_asks_and_one_key_grants",
            ),
            *_in(
                "process/test_halt_cli",
                "test_the_loser_of_a_seizure_with_halt_is_told_and_refused",
            ),
            *_in(
                "process/test_turn_cli",
                "test_input_of_others_is_refused_naming_the_holder_and_how_to_ask",
                "test_the_turn_is_seized_from_a_holder_that_loops",
            ),
        ),
        files=("core/session.py", "host/journaling.py", "host/turning.py"),
    ),
    Requirement(
        "M8",
        "Authority is judged at the input against the current state, with the originator bound.",
        tests=(
            *_in(
                "faults/test_journal_crash_points",
                "test_an_input_cut_off_by_a_kill_is_typed_and_attributed_once",
                "test_a_daemon_that_dies_while_it_carries_on_leaves_the_rest_to_the_next",
                "test_a_seizure_cut_off_by_a_kill_happened_or_did_not",
                "test_a_revocation_cut_off_by_a_kill_is_in_force_and_recorded",
                "test_a_key_cut_off_by_a_kill_in_compiled_code_is_typed_and_attributed_once",
            ),
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
                "test_the_judge_finds_nothing_wrong_with_a_careful_build",
                "test_the_judge_catches_a_careless_build",
            ),
            *_in(
                "process/test_actors_cli",
                "test_a_claim_with_another_key_is_refused",
                "test_a_claim_cannot_be_used_on_another_connection",
                "test_a_revocation_counts_at_once_for_a_connected_operator",
                "test_narrowing_counts_at_once_for_a_connected_operator",
            ),
            *_in(
                "process/test_log_cli",
                "test_each_command_is_in_the_log_once_with_the_actor_who_ran_it",
            ),
            *_in(
                "process/test_typed_ahead",
                "test_a_command_typed_before_its_prompt_is_of_whoever_typed_it",
            ),
            *_in(
                "faults/test_authority_bad_input",
                "test_on_a_full_disk_nothing_is_typed_unrecorded_and_halting_still_works",
            ),
            *_in(
                "faults/test_quiet_journals",
                "test_what_was_done_last_is_signed_though_nothing_follows_it",
            ),
        ),
        open=f"{GATE}: who staged an effect that another sets off",
        files=("core/session.py", "host/journaling.py", "adapters/burst.py", "wire/claims.py"),
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
        tests=(
            *_in(
                "privileged/test_leases",
                "test_a_host_that_is_cut_off_freezes_it_within_the_lease_and_goes_on_in_a_new_epoch",
                "test_what_another_host_took_over_never_runs_here_again",
                "test_nobody_is_routed_to_it_from_afar_while_it_is_fenced",
            ),
            *_in(
                "process/test_relay_cluster",
                "test_closing_the_stream_ends_a_far_subscription_and_moving_the_session_tells_why",
                "test_lower_epochs_are_refused_at_every_relay",
                "test_of_two_hosts_that_announce_one_epoch_at_two_relays_at_once_one_is_refused",
            ),
            *_in(
                "process/test_relay_cluster_faults",
                "test_a_paused_relay_is_lost_and_when_it_goes_on_its_host_hears_what_it_missed",
                "test_without_nats_what_is_local_goes_on_and_new_epochs_are_refused",
            ),
            *_in(
                "process/test_relay_registry",
                "test_a_relay_with_a_registry_refuses_lower_epochs_after_it_was_killed",
            ),
            *_in(
                "process/test_relay_storm",
                "test_a_storm_of_faults_loses_doubles_and_misroutes_nothing",
            ),
            *_in(
                "simulation/test_relay_links",
                "test_an_answer_with_a_lower_epoch_than_is_known_is_no_answer",
            ),
            *_in(
                "unit/test_tenure",
                "test_once_another_host_has_it_what_stands_still_here_never_runs_again",
                "test_two_hosts_that_are_cut_off_in_turn_never_hold_it_together",
                "test_a_store_that_lost_its_memory_gives_nothing_back",
            ),
            *_in(
                "unit/test_uplink",
                "test_what_was_fenced_is_not",
            ),
        ),
        open=MOVE,
        files=("core/lease.py", "host/leasing.py", "relay/floors.py"),
    ),
    Requirement(
        "F2",
        "Leases carry a rising token; a session chooses to be pinned (default) or re-homeable.",
        tests=(
            *_in(
                "privileged/test_leases",
                "test_a_host_that_is_cut_off_freezes_it_within_the_lease_and_goes_on_in_a_new_epoch",
                "test_an_interruption_that_heals_before_the_lapse_is_not_noticed",
                "test_who_is_attached_is_sent_away_with_the_reason_and_gets_no_more_output",
                "test_a_terminal_and_a_command_that_is_waited_for_are_told_why_they_end",
                "test_a_halt_outlasts_the_fence_and_is_not_ended_by_it",
                "test_a_new_daemon_carries_the_lease_on_in_the_same_incarnation",
                "test_a_new_daemon_finds_it_fenced_and_leaves_it_frozen",
                "test_the_keeper_freezes_it_when_the_daemon_is_stopped",
                "test_a_new_daemon_finds_what_the_keeper_froze_and_judges_by_the_lease",
                "test_nothing_is_shown_that_a_stopped_daemon_finds_after_the_lapse",
                "test_nobody_is_routed_to_it_from_afar_while_it_is_fenced",
                "test_a_nats_that_does_not_answer_fences_in_time_and_heals",
            ),
            *_in(
                "unit/test_fenced_session",
                "test_what_acts_on_it_is_refused_and_is_possible_again_when_the_lease_is",
                "test_a_key_that_was_judged_before_is_not_taken_after",
            ),
            *_in(
                "unit/test_keeper_deadlines",
                "test_a_tree_is_frozen_when_the_daemon_says_nothing",
                "test_word_that_is_under_way_counts",
            ),
            *_in(
                "unit/test_tenure",
                "test_it_is_renewed_for_as_long_as_the_store_answers",
                "test_one_that_cannot_renew_stops_before_the_lease_can_be_taken",
                "test_an_interruption_shorter_than_the_lease_is_not_noticed",
                "test_after_the_lapse_it_goes_on_in_a_new_epoch_and_without_the_wait",
                "test_a_lease_that_ran_out_while_the_machine_slept_is_not_acted_on_at_all",
            ),
        ),
        open=MOVE,
        files=("core/lease.py", "host/leasing.py", "keeper/deadlines.py"),
    ),
    Requirement(
        "F3",
        "A session is re-homed only after its old lease is known to have expired; old epochs "
        "are refused everywhere.",
        tests=(
            *_in(
                "privileged/test_leases",
                "test_a_host_that_is_cut_off_freezes_it_within_the_lease_and_goes_on_in_a_new_epoch",
                "test_what_another_host_took_over_never_runs_here_again",
            ),
            *_in(
                "unit/test_tenure",
                "test_after_the_lapse_it_goes_on_in_a_new_epoch_and_without_the_wait",
                "test_once_another_host_has_it_what_stands_still_here_never_runs_again",
            ),
        ),
        open=MOVE,
        files=("core/lease.py", "host/tenure.py"),
    ),
    Requirement(
        "F4",
        "A session's own programs can read its fencing token, to pass it on.",
        tests=(
            *_in(
                "privileged/test_leases",
                "test_a_host_that_is_cut_off_freezes_it_within_the_lease_and_goes_on_in_a_new_epoch",
                "test_programs_of_a_session_read_its_token",
                "test_a_program_sees_the_new_token_when_it_runs_again",
            ),
        ),
        files=("host/token.py",),
    ),
    Requirement(
        "F5",
        "Losing a relay stops no pinned session and cuts off no local operator.",
        tests=(
            *_in(
                "privileged/test_leases",
                "test_nobody_is_routed_to_it_from_afar_while_it_is_fenced",
                "test_a_nats_that_does_not_answer_fences_in_time_and_heals",
            ),
            *_in(
                "process/test_host_relays",
                "test_a_host_is_at_all_of_its_relays_and_losing_one_loses_nobodys_way",
                "test_relay_restarts_are_survived_and_an_attached_operator_sees_nothing",
            ),
            *_in(
                "process/test_own_relay",
                "test_a_killed_relay_is_back_by_itself_and_a_local_operator_sees_nothing",
                "test_a_killed_daemon_leaves_the_relay_and_comes_back_to_it",
                "test_a_killed_keeper_leaves_no_relay_and_the_next_one_has_the_same_port",
            ),
            *_in(
                "process/test_reach",
                "test_a_relay_that_dies_costs_nothing_but_the_wait",
            ),
            *_in(
                "process/test_relay_cluster_faults",
                "test_a_killed_relay_is_forgotten_within_seconds_and_its_host_found_at_the_other",
                "test_a_paused_relay_is_lost_and_when_it_goes_on_its_host_hears_what_it_missed",
                "test_without_nats_what_is_local_goes_on_and_new_epochs_are_refused",
                "test_the_loss_of_one_nats_server_of_three_is_survived",
            ),
            *_in(
                "process/test_relay_registry",
                "test_make_cluster_starts_relays_that_are_one_and_ends_all_it_started",
            ),
            *_in(
                "process/test_relay_storm",
                "test_a_storm_of_faults_loses_doubles_and_misroutes_nothing",
            ),
            *_in(
                "faults/test_reach_faults",
                "test_a_storm_over_relays_and_nats_loses_doubles_and_misattributes_no_input",
            ),
            *_in(
                "unit/test_uplink",
                "test_it_is_dialled_again_for_as_long_as_it_takes",
                "test_what_was_refused_for_a_while_is_announced_again",
            ),
        ),
        files=("host/reach.py", "relay/cluster.py"),
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
        tests=(
            *_in(
                "process/test_blame_export",
                "test_the_provenance_names_the_actor_of_every_byte_and_its_proof_verifies",
            ),
            *_in(
                "process/test_verify_cli",
                "test_both_forms_of_a_proof_are_checked_with_the_host_down",
                "test_a_proof_that_was_changed_or_is_of_something_else_is_invalid",
                "test_a_journal_put_back_to_an_older_state_is_given_away_by_a_later_proof",
            ),
            *_in(
                "properties/test_journal_chain",
                "test_a_proof_holds_for_its_range_and_for_no_other",
            ),
            *_in(
                "unit/test_journal_proof",
                "test_a_witness_is_36_bytes_and_holds_for_its_records_alone",
                "test_a_witness_fits_no_other_range_session_or_record",
                "test_a_signed_proof_stands_on_its_own_and_survives_being_text",
                "test_any_changed_field_of_a_signed_proof_breaks_it",
            ),
            *_in(
                "faults/test_quiet_journals",
                "test_what_was_done_last_is_signed_though_nothing_follows_it",
            ),
        ),
        files=("journal/proof.py", "cli/proof_check.py"),
    ),
    Requirement(
        "N8",
        "A chain is continuous, forked, unverifiable or migrated, and says which.",
        tests=(
            *_in(
                "process/test_verify_cli",
                "test_a_live_and_an_ended_session_are_intact_and_exit_with_0",
                "test_any_byte_changed_is_found_at_its_entry",
                "test_a_host_says_where_an_ended_sessions_journal_is_broken",
            ),
            *_in(
                "properties/test_journal_chain",
                "test_any_change_to_a_sealed_journal_is_found_no_later_than_where_it_was_made",
            ),
            *_in(
                "unit/test_journal_proof",
                "test_an_unbroken_history_in_one_incarnation_is_continuous",
                "test_an_epoch_that_rises_is_migrated_with_its_point",
                "test_damage_is_unverifiable_with_the_gap_and_a_fork_is_forked",
            ),
            *_in(
                "unit/test_journal_tampering",
                "test_every_flipped_byte_is_found_at_its_entry",
                "test_cut_off_at_any_byte_the_head_misses_what_is_gone",
                "test_another_history_signed_by_the_same_host_is_a_fork",
                "test_segments_of_two_sessions_swapped_are_foreign",
            ),
            *_in(
                "faults/test_authority_bad_input",
                "test_a_clock_set_back_revives_no_right_and_disorders_no_journal",
            ),
            *_in(
                "faults/test_linearizable",
                "test_one_order_explains_what_twenty_actors_did_while_the_daemon_was_killed",
            ),
        ),
        files=("journal/verify.py", "journal/status.py"),
    ),
    Requirement(
        "N9",
        "A break is a signed record and a new entity with lineage, never papered over.",
        tests=(
            *_in(
                "process/test_actors_cli",
                "test_a_session_says_which_one_it_follows",
            ),
            *_in(
                "process/test_discontinuity",
                "test_a_damaged_journal_ends_the_identity_and_what_runs_goes_on_as_a_successor",
                "test_a_session_that_died_with_its_host_is_discontinued_by_a_signed_entry",
            ),
            *_in(
                "process/test_verify_cli",
                "test_a_torn_tail_after_host_death_is_reported_cut_and_recorded",
                "test_after_host_death_it_is_discontinued_and_its_successor_says_whom_it_follows",
                "test_a_damaged_journal_gets_its_signed_statement_beside_it",
            ),
            *_in(
                "unit/test_journal_proof",
                "test_a_whole_journal_is_discontinued_by_its_last_entry_and_never_extended",
                "test_a_damaged_journal_is_not_extended_and_its_end_is_stated_beside_it",
                "test_a_successor_names_its_predecessor_at_the_place_it_ended",
            ),
            *_in(
                "privileged/test_leases",
                "test_a_damaged_journal_leaves_its_successor_halted_and_pinned",
            ),
        ),
        files=("journal/lineage.py", "host/discontinuity.py", "host/inheriting.py"),
    ),
    # -- R. Reachability and trust ------------------------------------------------------------
    Requirement(
        "R1",
        "A host dials out and opens no inbound port.",
        tests=(
            *_in(
                "process/test_host_relays",
                "test_a_host_is_at_all_of_its_relays_and_losing_one_loses_nobodys_way",
                "test_relay_restarts_are_survived_and_an_attached_operator_sees_nothing",
                "test_a_host_gets_to_its_relay_through_a_proxy",
            ),
            *_in(
                "process/test_own_relay",
                "test_up_prints_a_link_by_which_another_device_lists_and_attaches",
                "test_a_killed_relay_is_back_by_itself_and_a_local_operator_sees_nothing",
                "test_in_a_network_the_link_carries_the_certificates_fingerprint",
            ),
            *_in(
                "process/test_reach",
                "test_every_verb_works_on_a_machine_that_opened_no_port",
            ),
            *_in(
                "process/test_relay_cluster",
                "test_a_host_at_one_relay_is_reached_from_another_by_session_and_by_key",
            ),
            *_in(
                "unit/test_uplink",
                "test_it_proves_itself_and_then_announces_all_it_has",
            ),
        ),
        files=("host/uplink.py", "dial/websocket.py"),
    ),
    Requirement(
        "R2",
        "Many machines and sessions are addressed from one place.",
        tests=(
            *_in(
                "process/test_own_relay",
                "test_up_prints_a_link_by_which_another_device_lists_and_attaches",
            ),
            *_in(
                "process/test_reach",
                "test_every_verb_works_on_a_machine_that_opened_no_port",
                "test_a_terminal_elsewhere_is_a_terminal_here",
            ),
        ),
        files=("sdk/machines.py", "sdk/remote.py"),
    ),
    Requirement(
        "R3",
        "Attaching needs an authenticated actor authorised for this session; knowing an id "
        "entitles to nothing.",
        tests=(
            *_in(
                "process/test_admission_cli",
                "test_an_invite_is_a_link_that_says_what_it_allows_and_until_when",
                "test_an_agent_works_by_what_it_was_handed_until_its_giver_is_revoked",
                "test_a_session_does_not_inherit_what_its_starter_showed",
                "test_what_was_revoked_stays_revoked_when_the_daemon_is_replaced",
                "test_another_unix_user_comes_into_one_session_by_a_grant_and_into_no_other",
            ),
            *_in(
                "process/test_reach",
                "test_what_is_done_from_afar_is_attributed_to_the_device",
                "test_an_invite_gives_no_more_than_it_says",
                "test_a_link_is_good_once",
                "test_a_revoked_device_is_out_at_once_and_stays_out",
            ),
            *_in(
                "unit/test_admission",
                "test_a_device_that_joins_is_an_actor_of_the_inviters_user_and_may_what_was_said",
                "test_what_was_answered_is_known_to_the_daemon_that_comes_after",
                "test_a_use_is_on_disk_before_the_chain_is_given_out",
                "test_a_use_that_could_not_be_written_is_not_used_up_and_not_answered",
                "test_an_invite_ends_and_a_clock_set_back_does_not_bring_it_back",
                "test_guesses_are_slowed_down_counted_on_disk_and_close_the_invite",
                "test_ids_that_do_not_exist_are_slowed_down_together",
                "test_a_grant_handed_on_brings_in_somebody_the_host_never_met",
                "test_knowing_nothing_entitles_to_nothing",
                "test_a_revoked_parent_takes_its_descendants_with_it_at_once",
                "test_a_revoked_invite_lets_nobody_in_and_may_shut_out_who_came",
            ),
            *_in(
                "faults/test_reach_faults",
                "test_a_storm_over_relays_and_nats_loses_doubles_and_misattributes_no_input",
            ),
        ),
        files=("host/admission.py", "core/grants.py", "core/invites.py"),
    ),
    Requirement(
        "R4",
        "A compromised relay can deny service; it cannot read, forge or strip.",
        tests=(
            *_in(
                "process/test_own_relay",
                "test_in_a_network_the_link_carries_the_certificates_fingerprint",
            ),
            *_in(
                "process/test_relay",
                "test_who_opens_a_stream_is_handed_what_the_host_said_of_itself",
            ),
            *_in(
                "process/test_relay_cluster",
                "test_a_host_at_one_relay_is_reached_from_another_by_session_and_by_key",
            ),
            *_in(
                "properties/test_shared_output",
                "test_what_is_shown_is_what_was_printed",
            ),
            *_in(
                "faults/test_reach_faults",
                "test_a_storm_over_relays_and_nats_loses_doubles_and_misattributes_no_input",
            ),
            *_in(
                "unit/test_remote_channel",
                "test_what_changes_something_arrives_signed_and_the_rest_does_not",
                "test_a_host_that_falls_silent_is_noticed",
                "test_an_old_channel_gives_way_to_a_new_one",
            ),
        ),
        files=("wire/channel.py", "wire/signed_input.py", "wire/audience.py"),
    ),
    Requirement(
        "R5",
        "Roles: admin, execute, read, approve-only.",
        tests=(
            *_in(
                "process/test_actors_cli",
                "test_grant_says_what_it_granted_and_lists_it",
                "test_what_an_envelope_does_not_allow_is_refused_and_not_done",
            ),
            *_in(
                "unit/test_authority",
                "test_rights_exactly_those_of_a_role_have_its_name",
            ),
            *_in(
                "process/test_admission_cli",
                "test_an_invite_is_a_link_that_says_what_it_allows_and_until_when",
                "test_only_who_may_grant_there_invites_and_nobody_to_more_than_it_has",
                "test_an_agent_works_by_what_it_was_handed_until_its_giver_is_revoked",
                "test_what_is_handed_on_is_never_more",
            ),
            *_in(
                "process/test_reach",
                "test_an_invite_gives_no_more_than_it_says",
            ),
            *_in(
                "unit/test_admission",
                "test_a_device_that_joins_is_an_actor_of_the_inviters_user_and_may_what_was_said",
                "test_nobody_invites_to_more_than_it_has",
            ),
        ),
        files=("model/envelope.py", "core/authority.py"),
    ),
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
