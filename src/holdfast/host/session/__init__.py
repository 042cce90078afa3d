"""One live session: its input, output, record, turn, halt, lease and recovery.

requests.py          requests to start, show, attach to and end sessions
input_requests.py    requests that reach the terminal -> events
turn_requests.py     requests about turn, seize, halt and resume -> events
journal_requests.py  requests for what was recorded: pieces, verdicts, proofs, blame
start.py             a `run` request -> a live session
live_session.py      the parts of a session, and which of them carries out which effect
executor.py          the one ingest: an event in, its effects carried out in order
recovery.py          a deposit -> a live session, step by step
parcel.py            what a new daemon needs to carry it on
host_input.py        input that no operator sent
input_custody.py     an input that was allowed -> journal -> custody -> PTY
output.py            PTY -> ring -> readers; nowhere in a blind turn
screen_view.py       the lazily fed screen, and its checkpoint
record.py            what is recorded, and when it is on disk
record_backlog.py    what happened and could not be recorded yet
journal_repair.py    what the daemon before left undone in its journal
refusal_counts.py    refused inputs, recorded once for many
turn_notices.py      changes of the turn: recorded, saved, announced
tick_timer.py        wakes the session when time alone would change something
halt_control.py      stopping the tree, or what one actor started in it
command_leaves.py    one control group for each command that leaves something behind
lease.py             a re-homeable session's lease: acquired, renewed, lost, held again, released
lease_runner.py      that lease, run: a clock and a coordination point for core.lease
fencing_token.py     the fencing token, for the session's programs
presence.py          who is attached, who used it, and who hears of what happens
snapshot_place.py    where its program gives its own state
near_look.py         how it is now, for the death of its host
closing.py           the end: tombstone, slow readers, giving back
signals.py           signals for the processes of a session
handoff.py           what a new turn holder must know, since which point
shell_commands.py    what the session's shell reports
nested_shells.py     which of the shells that report reads the command lines
line_attribution.py  who typed the line that the shell reads
exec_runs.py         `exec`: command lines that somebody waits for, remembered by key
state_since.py       since when a session is halted or fenced
state_watch.py       a watched session's state, announced on change
user_usage.py        what each unix user has of the host, against its quotas
describe.py          the session in the words of model.info
blame.py             whose command made each line of the scrollback
discontinuity.py     a journal that cannot go on: the statement, and the successor
"""
