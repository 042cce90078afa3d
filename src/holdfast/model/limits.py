"""Limits that concern operators, relays and settings: the unit is in the name; the comment gives
the reason, and what happens at the limit. Waits of one adapter or of the keeper are named in their
own files."""

from __future__ import annotations

# -- the wire ---------------------------------------------------------------------------------
FRAME_MAX_BYTES = 1 << 20  # one message; more is a protocol violation and ends the connection
INPUT_MAX_BYTES = 64 << 10  # one input; a client splits a longer paste, a script gets an error
QUIET_ACK_S = 0.05  # quiet inputs are acknowledged by then: far below the time of a reconnect
OUTPUT_CHUNK_BYTES = (
    64 << 10
)  # one output frame: large enough to be cheap, small enough to interleave
EVENT_BACKLOG = 256  # events held for one operator that does not read; then it gets a gap
ANSWERS_MAX_BYTES = 1 << 20  # answers waiting for one operator; then it is not read until it reads
REQUESTS_IN_FLIGHT = 64  # unanswered requests of one connection; more are not read until one ends
OPERATORS_MAX = 1024  # connections to one host; further ones are refused with limit_reached
# Of them, kept for local connections of root and the host's own user, from outside of sessions:
# others cannot use up what `halt` needs.
OPERATORS_KEPT = 64
# Of one other unix user, from inside one session of the host's own, or of one actor through relays;
# then refused.
USER_CONNECTIONS = 256
GREETING_S = 10.0  # for a connection's hello; then it is closed: a client says it at once
# For a connection from a session that is being started to be placed in it; then it is refused.
UNPLACED_S = 5.0
UNPLACED_MAX = 64  # of these at once; further ones are refused

# -- the end-to-end channel (docs/channel.md) ---------------------------------------------------
CHANNEL_REKEY_RECORDS = 1 << 16  # under one key; far below the limit of AES-GCM, and cheap
CHANNEL_REKEY_BYTES = 64 << 20  # the same in bytes
CHANNEL_BEAT_S = 5.0  # how often each side sends a heartbeat
CHANNEL_PATIENCE_S = 15.0  # a record not confirmed by then was held back: three beats
CHANNEL_RENEW_S = 3600.0  # a channel this old is replaced by a new one, with new secrets
CHANNEL_OVERDUE_S = 60.0  # after that long the host ends one that was not replaced
CHANNEL_GRANT_MAX_BYTES = 16 << 10  # of the grant that an operator presents
CHANNEL_UNACKED_INPUTS = 4096  # inputs the host has not confirmed; then refused
CHANNEL_UNACKED_BYTES = 1 << 20  # the same in bytes
CHANNEL_STREAMS = (
    64  # clients of one actor whose last input a session remembers; the oldest is dropped
)
OUTPUT_KEY_S = 3600.0  # how long a sender key is used; a reader that leaves ends it at once
OUTPUT_KEY_FRAMES = 1 << 24  # and for so many frames
OUTPUT_UNSIGNED_FRAMES = 64  # frames that one signature may cover; a reader takes no more
OUTPUT_UNSIGNED_S = 0.05  # unsigned frames are signed by then

# -- connections to a session's ports (`hold forward`) ---------------------------------------------
FORWARD_PIECE_BYTES = 16 << 10  # one message of data: other messages never wait long behind it
FORWARD_WINDOW_BYTES = (
    256 << 10
)  # of one connection, in one direction, not yet taken; then the sender waits
FORWARD_CONNECTIONS = 64  # open at once for one operator; further ones are refused
FORWARD_ACTOR_CONNECTIONS = 256  # for all operators of one actor
FORWARD_HOST_CONNECTIONS = 1024  # for all actors: each is a descriptor of the daemon
FORWARD_DIAL_S = 10.0  # for a program to accept a connection; then refused
FORWARD_RECORD_S = (
    60.0  # connections of one actor to one port within this time are one journal entry
)

# -- sessions ---------------------------------------------------------------------------------
SESSIONS_MAX = 2048  # live sessions of one host; further ones are refused with limit_reached
METRICS_TOKEN_MIN_CHARS = 32  # its hash is in the process list: it must not be guessed from that
RETENTION_DAYS = (
    30.0  # ended sessions are kept on disk for so long, unless a setting says otherwise
)
RETENTION_BYTES = 4 << 30  # and together at most so much of it; then the oldest are removed
DELETED_FILE_MAX_BYTES = (
    64 << 20
)  # of one that is still open, in a checkpoint; a larger one is refused
# Of all checkpoints of a host, compressed; then a further one is refused. Some dozens of a session
# of a gigabyte: the second and later ones store only what changed.
CHECKPOINT_QUOTA_BYTES = 16 << 30
PRUNE_FIRST_S = 60.0  # after a daemon's start: it has better things to do first
PRUNE_EVERY_S = 3600.0  # how often ended sessions are looked at
PRUNED_AT_ONCE = 256  # sessions removed each time; the rest waits for the next
SESSIONS_KEPT = 64  # of them, for root and the host's own user
USER_SESSIONS = 256  # live, of one other unix user; then refused
USER_RING_BYTES = 1 << 30  # of rings of these, all together: they are memory of the host
# Of one other unix user's sessions, live and ended; then none begins, and those that run are
# treated as on a full disk: input is refused, and nobody is kept from stopping them.
USER_DISK_BYTES = 4 << 30
USER_DISK_LOOK_S = 10.0  # how stale that number may be: looking reads many directories
NEAR_END_SETTLE_S = 1.0  # a change of a session is on disk by then, for the death of its host;
NEAR_END_EVERY_S = 5.0  # but one session is not written more often than that
NEAR_END_OUTPUT_BYTES = 64 << 10  # of its latest output: a screen and some pages above it
NEAR_END_AT_ONCE = 128  # sessions written in one round; the rest waits for the next, a second later
IDLE_MOVABLE_S = 24 * 3600.0  # unused for so long, a movable session is evicted: it can wake
IDLE_CONTAINED_S = 7 * 24 * 3600.0  # a contained one is reported, and ended where that is set
IDLE_PLAIN_S = 7 * 24 * 3600.0  # the same
IDLE_WARNING_S = 600.0  # between the warning and the deed: time to come back, or to pin it
IDLE_RESIDENT_MAX = 256  # evictable idle sessions in memory; then those used longest ago are due
REAP_LOOK_MAX_S = 30.0  # how often sessions are looked at: a look costs some 0.1 ms for each
REAP_LOOK_MIN_S = 0.2  # and with thresholds of seconds
REAP_AT_ONCE = 4  # sessions reaped in one round, one after the other: a checkpoint fills the disk
CHECKPOINT_EVERY_MIN_S = 5.0  # between periodic ones: below it a session would mostly stand still
CHECKPOINT_LOOK_S = 1.0  # how often it is looked whether one is due
CHECKPOINT_IDLE_S = (
    10.0  # unused for so long, a session is checkpointed without waiting for its turn
)
CHECKPOINTS_PERIODIC = 2  # kept of each session: the last, and one should that not be readable
SNAPSHOT_MAX_BYTES = 64 << 20  # of a program's own state: it goes through memory; then refused
SNAPSHOT_WAIT_S = 30.0  # for a program to give it; then the checkpoint fails and it runs on
TOMBSTONES_LISTED = 50  # ended sessions shown by `hold ls --all`; older ones stay on disk
IN_FLIGHT_INPUTS = 5  # the last inputs named of a lost session
IN_FLIGHT_TEXT_CHARS = 200  # of each of them, and of text that was not submitted
NAME_MAX_CHARS = 64
ID_PREFIX_MIN_CHARS = 6  # of a session's id where a prefix is enough; shorter ones name nothing
ARGV_MAX_BYTES = 128 << 10  # command and environment together: the kernel's own bound on one string
ARGV_KEPT_MAX_BYTES = 64 << 10  # the command alone: it is stored with the session's state
SIZE_MAX_CELLS_PER_SIDE = 1000  # a screen is kept in memory; 1000x1000 is beyond any real terminal

# -- output: PTY -> conduit -> ring -----------------------------------------------------------
RING_DEFAULT_BYTES = (
    1 << 20
)  # output held for a reader that reconnects (M1); older bytes are dropped
RING_MIN_BYTES = 64 << 10  # below this one burst would fill it
RING_MAX_BYTES = 256 << 20  # it is written to disk when the session ends
SCROLLBACK_MAX_LINES = 2000  # kept by the screen for views; what tmux keeps by default

# -- input: ledger of who sent what, kept in the session's shared page -------------------------
LEDGER_OPERATORS = 64  # operators whose last input sequence survives a daemon crash; LRU beyond
INTAKE_OPERATORS = 1024  # operators whose last input sequence a daemon remembers; LRU beyond
INPUT_PENDING_BYTES = 256 << 10  # input accepted for a PTY that does not drain; then refused

# -- custody: the keeper imports nothing, so its limits are in holdfast.keeper ------------------

# -- authority and turn -----------------------------------------------------------------------
ACTORS_MAX = 4096  # known to one host, including revoked ones (they must stay known); then refused
# On one host; then giving rights is refused, and taking them away is not. Those of an ended session
# stay: what it left can still be read, and to drop an envelope that narrows would widen.
ENVELOPES_MAX = 16384
ACTOR_DISPLAY_MAX_CHARS = 64  # of a display name; it must fit a status line
GRANTORS_NAMED = 3  # in a refusal: enough to know who can help
RATE_BURST_S = 2.0  # how much of a rate may come at once: a paste, a command after a pause
RATE_BUCKETS_MAX = 4096  # rates being counted; full ones are dropped first, then refused
HANDOFF_COMMANDS = 50  # shown to a new holder; the rest is only counted
HANDOFF_MOVES = 20  # the same for changes of the turn
HANDOFF_RECORDS = 20_000  # the latest of the journal, read for it: half a second, in a thread
HANDOFF_POINTS = 64  # actors whose last look is remembered per session; the oldest is dropped
TYPED_AHEAD_LINES = (
    64  # typed ahead and not read, each with its author; beyond that the oldest are merged
)
LABELS_MAX = 32  # of one session
TURN_PAUSE_S = 3.0  # free-when-idle: longer than a look at the screen within one command line
TURN_IDLE_S = 60.0  # a holder that writes nothing for this long does not need the turn
TURN_HOLD_MAX_S = 3600.0  # declared at once by a holder; one that needs longer declares it again
TURN_AWAY_S = 30.0  # ask-holder: time for a disconnected holder to come back
TURN_NEVER_LONGER_S = 3600.0  # ask-holder: a holder idle for this long is not asked even if present
# Actors that held the turn and are remembered, for what a program inside may do; their ids are in
# each parcel. Of a session that had more, nothing is allowed from inside.
TURN_HOLDERS_MAX = 512
TURN_QUEUE_MAX = 64  # actors waiting for one turn; more than that is refused
TURN_TEXT_MAX_CHARS = 200  # of a message or reason, shown in status lines; longer ones are cut

# -- the gate -----------------------------------------------------------------------------------
# Of an input, from its first line's Enter on, while that waits at the gate: it is in the parcel.
GATED_INPUT_MAX_BYTES = 16 << 10
GATE_JUDGE_S = 5.0  # for a policy to judge one effect; then it is refused
APPROVAL_LIFE_S = 900.0  # for somebody to approve; then what waits is refused
APPROVALS_PENDING = 8  # of one session, each in its parcel; a further effect is refused, not held
APPROVAL_TEXT_MAX_BYTES = 8 << 10  # of all that wait in one session; a longer line is refused
APPROVALS_REMEMBERED = 16  # that were decided, for those who look; the oldest is dropped
APPROVAL_ID_MIN_CHARS = 3  # of an id where a prefix is enough

# -- shell reports ----------------------------------------------------------------------------
EXECS_REMEMBERED = 4  # of `exec` without a key, per session: for clients that reconnect
KEYED_EXECS_REMEMBERED = 64  # with a key, so that a repeat runs nothing; the oldest is dropped
EXEC_KEY_MAX_CHARS = 256
ACTION_INTENT_MAX_CHARS = 1000  # of a structured action: a paragraph for whoever reads the record
ACTION_COMMAND_MAX_CHARS = 16 << 10  # as much of a command as its shell's report keeps
ACTION_PATH_MAX_CHARS = 1000  # of one path, glob or name that an action expects
ACTION_EXPECTED_MAX = 100  # files, ports, ... declared by one action
ACTION_WORDS_MAX = 1000  # of its command, given as words
ACTION_MAX_BYTES = (
    64 << 10
)  # one action as JSON: an entry of the journal holds it with room to spare
ACTION_RETRIES_MAX = 10  # of a refused action; whoever needs more should ask for the turn
ACTION_RETRY_MAX_S = 60.0  # the first pause between two of them
ACTION_PAUSE_MAX_S = 60.0  # and the longest, however often it was doubled
ACTION_SCAN_FILES = 20_000  # looked at before and after an action: 0.1 s; then it says `partial`
ACTION_SCAN_S = 1.0  # for one look; a slow file system must not hold an action up
ACTION_NAME_BYTES = 256  # of each of them; the end of a longer one is shown
ACTION_NAMED = 50  # files, processes, ... of a kind that are named; the rest is counted
ACTION_PORT_WAIT_S = 2.0  # for a declared port to be opened by what was left running
ACTION_SETTLE_S = 0.1  # what is still running after that was left running
ACTION_HELD_LOOK_S = 1.0  # between looks at a session in which an action waits for approval
ACTION_PROMPT_S = 1.0  # for the prompt after a command, with which the shell's state is written
SCORE_DAYS = 90  # kept of each actor
SCORE_WRITE_S = 0.5  # scores of so long are written together; a killed daemon loses those
SCORE_RECENT = 20  # actions in the recent score: a record that breaks shows at once
UNINTENDED_KEPT = 20  # actions of each actor with undeclared effects, the latest
UNINTENDED_NAMED = 5  # undeclared effects named of each of these; the rest is counted
UNINTENDED_COMMAND_CHARS = 200  # of the command of each
ATTENDEES_NAMED = 64  # operators of a session listed in its info
COMMANDS_REMEMBERED = 200  # command records kept per session; older ones are dropped
COMMAND_TEXT_MAX_BYTES = 16 << 10  # of one command line as reported by the shell; then cut
SHELL_STATE_MAX_BYTES = 2 << 20  # of a shell's state at a prompt; a bigger one is ignored
STATE_VALUE_MAX_CHARS = 4096  # of one value in it; the rest is kept as a digest
CHANGE_VALUE_MAX_CHARS = 500  # of one value shown to a new turn holder; then cut and marked

# -- journal ----------------------------------------------------------------------------------
JOURNAL_SEGMENT_BYTES = 8 << 20  # one file; then the next file begins. A reader holds one in memory
JOURNAL_ENTRY_MAX_BYTES = 192 << 10  # one entry: the largest input or command with room to spare
JOURNAL_AHEAD_BYTES = 64 << 10  # disk space reserved in advance; without it, effects are refused
JOURNAL_SEAL_ENTRIES = 4096  # unsigned entries; then the host signs
JOURNAL_SEAL_BYTES = 1 << 20  # the same in bytes
JOURNAL_BURST_S = 0.025  # keys within this time are recorded as one entry
JOURNAL_SYNC_S = 0.02  # then entries are synced together: within 50 ms in all
JOURNAL_REFUSALS_S = 1.0  # repeated refusals within this time are one entry
JOURNAL_FACTS_BYTES = 8 << 10  # of the reserve, left for the session's end
JOURNAL_BACKLOG_ENTRIES = (
    256  # entries that could not be written; beyond that they are only counted
)
JOURNAL_RETRY_S = 5.0  # how often writing them is retried
RIGHTS_RESERVE_BYTES = 16 << 10  # room for taking rights away, beside twice the file's own size
RIGHTS_RETRY_S = 2.0  # how often a revocation that could not be recorded is written again
JOURNAL_TAIL_ENTRIES = 64  # read by a daemon that takes over: more entries than one answer has
JOURNAL_TYPED_ENTRIES = 1024  # the same to find who typed what since the last command: 20 ms
JOURNAL_SEAL_S = 10.0  # the same in time, checked when something is recorded

# -- checkpoints ----------------------------------------------------------------------------------
# Of files captured with a checkpoint, unless `capture_max_bytes` says otherwise: they are copied
# while the session stands still, some 50 ms for so much. What is larger is left out, and named.
CAPTURE_MAX_BYTES = 64 << 20
CAPTURE_FILES_MAX = 10_000  # below one declared directory: looking at each takes 10 us of that time
CAPTURE_NAMED = 20  # files named where there may be thousands: the others are counted
CHECKPOINT_NOTE_MAX_CHARS = 200  # shown in a table of them; a longer one is cut
PROGRESS_AFTER_S = 0.4  # what is quicker is over before anybody could read how far it is
PROGRESS_EVERY_S = 0.2  # between two `progress` events of the same work
RESETS_RECORDED = 64  # connections named in the entry of one restore; the rest is counted

# -- leases and the coordination point --------------------------------------------------------
LEASE_EMBEDDED_S = 10.0  # one store on one machine: nothing to elect, so it may be short
LEASE_EMBEDDED_RENEW_S = 2.0
LEASE_CLUSTER_S = 30.0  # a NATS leader's failover takes 4 to 9 s; several renewals must fit
LEASE_CLUSTER_RENEW_S = 5.0
LEASE_DRIFT = 0.01  # of a clock's rate; quartz stays within a hundredth of this, NTP's slew too
LEASE_GRACE_S = 1.0  # for freezing a tree and closing attachments, on both sides of a handover
LEASE_RETRY_S = 1.0  # between looks at a coordination point that does not answer
LEASE_ACQUIRE_S = 5.0  # for a new session to get its lease; then the start is refused
LEASE_RELEASE_S = 3.0  # for releasing one after the end; then it lapses after its length
COORDINATION_CALL_S = 2.0  # for one answer; then a write is *unknown* and a read has failed
COORDINATION_KEY_MAX_CHARS = 200
COORDINATION_VALUE_MAX_BYTES = 64 << 10  # one value; records are far smaller. Refused beyond
COORDINATION_POLL_S = 0.1  # how late a watch may see what another process wrote
COORDINATION_MARKER_S = 60  # how long a deleted value leaves a marker for watchers
COORDINATION_HEARTBEAT_S = 1.0  # of a watch; after three missed ones it is restarted

# -- moving a session to another host ---------------------------------------------------------
MOVE_HELD_INPUTS = 1024  # inputs held while a session moves; further ones are refused
MOVE_HELD_BYTES = 1 << 20  # the same in bytes: they travel in one message
MOVE_SNAPSHOT_S = 120.0  # to freeze a tree and take its image; then it runs on here
MOVE_SILENCE_S = 30.0  # without a sign of progress of the other host; then it runs on here
MOVE_RESTORE_S = 120.0  # for the other host to restore it; then it runs on here
MOVE_CUTOVER_S = 10.0  # for the other host to take over what was released to it; then taken back
MOVE_LOOK_S = 0.2  # between looks at the lease record while it is changing hands
MOVE_ASK_S = 5.0  # between looks and questions of a target whose source fell silent
HOST_MESSAGE_BYTES = 2 << 20  # one message between hosts; what is larger goes in pieces

# -- links between hosts ----------------------------------------------------------------------
HOST_LINK_WINDOW_BYTES = 4 << 20  # of messages the other host has not read; then the sender waits
HOST_LINKS_MAX = 32  # from other hosts at once; further ones are closed
HOST_LINK_GREETING_S = 15.0  # for the other host to say who it is and what it wants
HOST_TICKET_S = 600.0  # a ticket can be used for the first time within this
HOST_TICKET_KEPT_S = 7 * 86400.0  # and again within this, until what it was for is settled
HOST_TICKETS_MAX = 256  # the oldest goes
HOST_IMAGE_CHUNKS = 16  # chunks of an image asked for at once
HOST_IMAGE_SILENCE_S = 60.0  # without any of them; then the transfer is given up, to be resumed

# -- how a host is reached ----------------------------------------------------------------------
HOST_RELAYS_MAX = 16  # it is connected to all of them, and announces every session to each

# -- the relay (docs/relay.md) ------------------------------------------------------------------
RELAY_FRAME_MAX_BYTES = 128 << 10  # one message to a relay: a record of a channel and a header
RELAY_HOSTS_MAX = 10_000  # connected to one relay; further ones are refused with limit_reached
RELAY_OPERATORS_MAX = 10_000  # the same
RELAY_SESSIONS_MAX = 100_000  # announced at one relay
RELAY_HOST_SESSIONS_MAX = 4096  # announced by one host: all it may hold, and some that just ended
RELAY_EPOCHS_MAX = 1_000_000  # highest epochs remembered; the oldest of absent sessions is dropped
RELAY_SOCKETS_MAX = 24_000  # connections in all, authenticated or not; then closed
RELAY_ADDRESS_SOCKETS = 4096  # the same from one address: a company may be behind one
RELAY_HANDSHAKE_S = 10.0  # for a request's head, for TLS, and again for proof or greeting
RELAY_HEARTBEAT_S = 20.0  # of silence before a ping; no pong within half of it ends the connection
RELAY_CLOSE_S = 2.0  # for the last messages to a connection being closed
RELAY_DRAIN_S = 10.0  # for clients to move to another relay before this one stops
RELAY_OPERATOR_STREAMS = 64  # open at once
RELAY_HOST_STREAMS = 8192  # the same to one host
RELAY_SUBSCRIPTIONS = 64  # of one operator
RELAY_ANNOUNCE_MAX = 64  # sessions in one message: each costs the relay a signature check
RELAY_STREAM_WINDOW_BYTES = 256 << 10  # in flight through one stream; more closes it (overrun)
RELAY_BROADCAST_WINDOW_BYTES = (
    256 << 10
)  # of a session, sent to no subscriber yet; then its host waits
RELAY_OPERATOR_QUEUE_BYTES = 1 << 20  # broadcasts held for one operator; then it gets a gap
RELAY_CONNECTION_BYTES = 16 << 20  # of stream data held for one connection; then the stream closes
RELAY_HELD_MAX_BYTES = 512 << 20  # for all connections together; then the same, or a gap
RELAY_SOCKET_BYTES = 256 << 10  # given to the kernel for one connection before we queue
RELAY_ANSWERS_MAX = 256  # messages waiting for one connection; then it is not read until it reads
RELAY_FAILED_PROOFS = 10  # from one address at once, refilled at
RELAY_FAILED_PROOFS_PER_S = 0.1
RELAY_OPENS = 200  # streams opened from one address at once, refilled at
RELAY_OPENS_PER_S = 50.0
RELAY_RISES = 10_000  # epoch floors raised from one address at once, refilled at
RELAY_RISES_PER_S = 10.0
RELAY_BEAT_S = 1.0  # between two heartbeats of one relay to the others
RELAY_SILENCE_S = 5.0  # without one a relay is lost: longer than NATS takes to lose a node
RELAY_FIND_S = 1.0  # for other relays to say which has a session
RELAY_ADDRESSES_MAX = 65_536  # addresses whose rates are counted; the least recent is dropped

# -- the ssh gateway (docs/ssh.md) ----------------------------------------------------------------
SSH_AUTHORIZED_MAX = 1024  # authorized keys; then refused
SSH_CONNECTIONS_MAX = 256  # authenticated; then refused with a message
SSH_UNPROVEN_MAX = 64  # not authenticated yet, counted apart from the others; then closed
SSH_ADDRESS_UNPROVEN = 16  # of them from one address
SSH_HANDSHAKE_S = 20.0  # to authenticate; a person may have to type a passphrase or touch a token
SSH_KEYS_TRIED = 20  # keys offered by one connection: an agent offers all it has. Then closed
SSH_CHANNELS_MAX = 10  # of one connection, each a process here; then refused
SSH_WINDOW_BYTES = 256 << 10  # typed and not yet taken by the child; then the client waits
SSH_UNSENT_BYTES = 64 << 10  # of one channel, not read by its client; then its child waits
SSH_SOCKET_BYTES = 256 << 10  # of one connection, in the kernel: a ^C waits behind no more
SSH_READ_BYTES = 64 << 10  # from one child at a time, so that all are served
SSH_BEAT_S = 30.0  # of silence before the client is asked for a sign of life
SSH_BEATS_MISSED = 10  # then it is gone: long, because an ssh stopped with ~^Z does not answer
SSH_CHILD_GRACE_S = 5.0  # between SIGHUP and SIGKILL to a child
SSH_LEAVE_S = 2.0  # for the last messages to a client being disconnected; then it is cut off
SSH_RECHECK_S = 1.0  # a removed key is disconnected by then

# -- grants and invites (docs/grants.md) ----------------------------------------------------------
GRANT_LINKS_MAX = 6  # of one chain: authority, person, device, agent, and two to spare
GRANT_STEPS_MAX = 8  # of a reach; each link may add to the one before
GRANT_RIGHTS_MAX = 32  # of one grant; there are 14, and newer versions may have more
GRANT_LINK_MAX_BYTES = 1024  # of one link; most have 250
GRANT_CHAIN_MAX_BYTES = 4096  # of a chain; as text it fits the 8 KiB that servers allow a header
GRANT_LIFE_MAX_S = 366 * 86400  # of one grant, so that a lost key becomes useless
GRANT_SKEW_S = 30  # how far an issuer's clock may be ahead of the host's; expiry is exact
GRANT_KNOWN_LINKS = (
    1024  # links whose signature a host remembers; the least recently used is dropped
)
GRANT_KNOWN_CHAINS = 256  # decoded chains kept; the least recently used is dropped
REVOCATIONS_MAX = 1800  # on one signed list: 64 KiB, one value of a coordination point
# Kept by the host that they are about: twice what it knows at a time. Then taking back one more
# grant is refused until one of these would have expired; revoking an actor needs no place.
REVOCATIONS_KEPT_MAX = 8192
INVITES_MAX = 1024  # that can still be used, on one host; then refused
INVITE_USES_MAX = 256  # devices of one invite
INVITE_WRONG_MAX = 16  # wrong codes for one invite; then it is closed. Nobody mistypes 128 bits
INVITE_GUESSES_PER_S = 1.0  # wrong codes for one invite, and for all unknown ids together
INVITE_KEPT_S = 30 * 86400  # how long an ended one is listed, if there is room
DEVICES_MAX = 4096  # grants by which devices joined; the oldest ended one is dropped
DELEGATES_MAX = (
    256  # actors with grants delegated by one device, so that it cannot use up DEVICES_MAX
)
DEVICE_SEEN_S = 60.0  # how stale a device's last-seen time on disk may be
INVITE_LINK_MAX_CHARS = 512  # a link with a long relay address; more would not fit a QR code well

# -- waiting ----------------------------------------------------------------------------------
STATE_SETTLE_S = 0.03  # quiet time after output before a watched session's state is looked at
STATE_RECHECK_MAX_S = (
    1.0  # a *watched* session is looked at at least this often, never faster than:
)
STATE_RECHECK_MIN_S = 0.05
RECONNECT_DEADLINE_S = 30.0  # how long a client tries to get back to a restarting daemon
END_GRACE_S = 3.0  # between SIGHUP, SIGTERM and SIGKILL to a tree
SNAPSHOT_MAX_BYTES = 16 << 20  # a message from a host: a screen with all its scrollback fits
