"""Every bound in the product: its unit is in its name, its reason beside it, and what happens at
the bound. A queue without a line here is a bug."""

from __future__ import annotations

# -- the wire ---------------------------------------------------------------------------------
FRAME_MAX_BYTES = 1 << 20  # one message; more is a protocol violation and ends the connection
INPUT_MAX_BYTES = 64 << 10  # one input; a client splits a longer paste, a script gets an error
QUIET_ACK_S = 0.05  # by then quiet inputs are acknowledged: far below what a reconnect takes
OUTPUT_CHUNK_BYTES = (
    64 << 10
)  # one output frame: large enough to be cheap, small enough to interleave
EVENT_BACKLOG = 256  # events held for one operator that does not read; then it is told of a gap
ANSWERS_MAX_BYTES = 1 << 20  # answers waiting for one operator; then it is not read until it reads
REQUESTS_IN_FLIGHT = 64  # unanswered requests of one connection; more are not read until one ends
OPERATORS_MAX = 1024  # connections to one host; further ones are refused with limit_reached

# -- sessions ---------------------------------------------------------------------------------
SESSIONS_MAX = 2048  # live sessions of one host; further ones are refused with limit_reached
TOMBSTONES_LISTED = 50  # ended sessions shown by `hold ls --all`; older ones stay on disk
NAME_MAX_CHARS = 64
ARGV_MAX_BYTES = 128 << 10  # command and environment together: the kernel's own bound on one string
ARGV_KEPT_MAX_BYTES = 64 << 10  # the command alone: it is kept with the session's state
SIZE_MAX_CELLS_PER_SIDE = 1000  # a screen is kept in memory; 1000x1000 is beyond any real terminal

# -- output: PTY -> conduit -> ring -----------------------------------------------------------
RING_DEFAULT_BYTES = 1 << 20  # output held for a reader that comes back (M1); older bytes roll off
RING_MIN_BYTES = 64 << 10  # below this one burst would roll over a whole resume
RING_MAX_BYTES = 256 << 20  # it is written to disk when the session ends
SCROLLBACK_MAX_LINES = 2000  # kept by the screen for views; what tmux keeps by default

# -- input: ledger of who sent what, kept in the session's shared page -------------------------
LEDGER_OPERATORS = 64  # operators whose last input sequence survives a daemon crash; LRU beyond
INTAKE_OPERATORS = 1024  # operators whose last input sequence a daemon remembers; LRU beyond
INPUT_PENDING_BYTES = 256 << 10  # input accepted for a PTY that does not drain; then refused

# -- custody: the keeper imports nothing, so its limits stand in holdfast.keeper ------------------

# -- authority and turn -----------------------------------------------------------------------
ACTORS_MAX = 4096  # known to one host, revoked ones too (they must stay known); then refused
ENVELOPES_MAX = 16384  # on one host; then refused. Those of an ended session are dropped
ACTOR_DISPLAY_MAX_CHARS = 64  # of a display name; it must fit a status line
GRANTORS_NAMED = 3  # in a refusal: enough to know whom to ask
RATE_BURST_S = 2.0  # so much of a rate may come at once: a paste, a command after a pause
RATE_BUCKETS_MAX = 4096  # rates being counted; full ones are dropped first, then refused
HANDOFF_COMMANDS = 50  # told to a new holder; of the rest only how many they were
HANDOFF_MOVES = 20  # the same for changes of the turn
HANDOFF_POINTS = 64  # actors whose last look is remembered per session; the oldest goes
LABELS_MAX = 32  # of one session
TURN_PAUSE_S = 3.0  # free-when-idle: longer than a look at the screen within one command line
TURN_IDLE_S = 60.0  # a holder that writes nothing for so long does not need the turn
TURN_AWAY_S = 30.0  # ask-holder: a holder whose last connection went may come back within this
TURN_NEVER_LONGER_S = 3600.0  # ask-holder: idle for so long, even a present holder is not asked
TURN_QUEUE_MAX = 64  # actors waiting for one turn; more than that is refused
TURN_TEXT_MAX_CHARS = 200  # of a message or reason, shown in status lines; longer ones are cut

# -- shell reports ----------------------------------------------------------------------------
COMMANDS_REMEMBERED = 200  # command records kept per session; older ones roll off
COMMAND_TEXT_MAX_BYTES = 16 << 10  # of one command line as reported by the shell; then cut, marked
SHELL_STATE_MAX_BYTES = 2 << 20  # of a shell's state at a prompt; a bigger one counts as none
STATE_VALUE_MAX_CHARS = 4096  # of one value in it; the rest is kept as a digest
CHANGE_VALUE_MAX_CHARS = 500  # of one value in what a new turn holder is shown; then cut, marked

# -- journal ----------------------------------------------------------------------------------
JOURNAL_SEGMENT_BYTES = 8 << 20  # one file; the next entry begins another. A reader holds one
JOURNAL_ENTRY_MAX_BYTES = 192 << 10  # one entry: the largest input or command with room to spare
JOURNAL_AHEAD_BYTES = 64 << 10  # disk held in advance; when it cannot be had, effects are refused
JOURNAL_SEAL_ENTRIES = 4096  # entries the host has not signed yet; then it signs
JOURNAL_SEAL_BYTES = 1 << 20  # the same in bytes
JOURNAL_BURST_S = 0.025  # keys are gathered for so long and recorded as one
JOURNAL_SYNC_S = 0.02  # then entries are brought to disk together: in all within 50 ms
JOURNAL_REFUSALS_S = 1.0  # like refusals in a row are one entry for so long
JOURNAL_FACTS_BYTES = 8 << 10  # of the reserve, left for what happens and cannot be refused
JOURNAL_TAIL_ENTRIES = 64  # looked at by a daemon that carries on: more than one answer's entries
JOURNAL_SEAL_S = 10.0  # the same in time, judged when something is recorded

# -- waiting ----------------------------------------------------------------------------------
STATE_SETTLE_S = 0.03  # quiet time after output before a watched session's state is looked at
STATE_RECHECK_MAX_S = (
    1.0  # a *watched* session is looked at at least this often, never faster than:
)
STATE_RECHECK_MIN_S = 0.05
ECHO_DUE_S = 0.0002  # the kernel's time for an echo: so long the daemon looks before it sleeps
ECHO_BACK_S = 0.0005  # the same for a client, with the daemon's own time
RECONNECT_DEADLINE_S = 30.0  # how long a client tries to get back to a restarting daemon
END_GRACE_S = 3.0  # between asking a tree to end (SIGHUP, SIGTERM) and ending it (SIGKILL)
SNAPSHOT_MAX_BYTES = 16 << 20  # a message from a host: a screen with all its scrollback fits
