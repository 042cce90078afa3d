"""The bounds that operators, relays and settings meet: the unit is in the name, the reason beside
it, and what happens there. A wait of one adapter or of the keeper is named in its own file."""

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

# -- the end-to-end channel (docs/channel.md) ---------------------------------------------------
CHANNEL_REKEY_RECORDS = 1 << 16  # under one key; far below what AES-GCM bears, cheap to keep
CHANNEL_REKEY_BYTES = 64 << 20  # the same in bytes
CHANNEL_BEAT_S = 5.0  # each side says that it lives, and what it has, this often
CHANNEL_PATIENCE_S = 15.0  # what was sent and not confirmed by then was held back: three beats
CHANNEL_RENEW_S = 3600.0  # a channel this old is replaced by a new one, with new secrets
CHANNEL_OVERDUE_S = 60.0  # and so long after that its host ends one that was not
CHANNEL_GRANT_MAX_BYTES = 16 << 10  # of what an operator shows to be let in
CHANNEL_UNACKED_INPUTS = 4096  # inputs an operator keeps until the host has them; then refused
CHANNEL_UNACKED_BYTES = 1 << 20  # the same in bytes
CHANNEL_STREAMS = 64  # clients of one actor whose last input a session remembers; its oldest goes
OUTPUT_KEY_S = 3600.0  # a sender key is used so long; somebody leaving ends it at once
OUTPUT_KEY_FRAMES = 1 << 24  # and for so many frames
OUTPUT_UNSIGNED_FRAMES = 64  # frames that one signature may cover; a reader takes no more
OUTPUT_UNSIGNED_S = 0.05  # by then the host signs what it sent unsigned

# -- connections to a session's ports (`hold forward`) ---------------------------------------------
FORWARD_PIECE_BYTES = 16 << 10  # one message of data: others' messages never wait long behind it
FORWARD_WINDOW_BYTES = 256 << 10  # of one connection, one way, not yet taken; then the sender waits
FORWARD_CONNECTIONS = 64  # open at once for one operator; further ones are refused
FORWARD_ACTOR_CONNECTIONS = 256  # for all operators of one actor
FORWARD_HOST_CONNECTIONS = 1024  # for everybody: each is a descriptor of the daemon's
FORWARD_DIAL_S = 10.0  # for a program to let a connection in; then refused
FORWARD_RECORD_S = 60.0  # connections of one actor to one port are one entry for so long

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
HANDOFF_RECORDS = 20_000  # of the journal read for it, the latest: half a second, in a thread
HANDOFF_POINTS = 64  # actors whose last look is remembered per session; the oldest goes
TYPED_AHEAD_LINES = 64  # typed and not read, told apart by who typed them; then the oldest are one
LABELS_MAX = 32  # of one session
TURN_PAUSE_S = 3.0  # free-when-idle: longer than a look at the screen within one command line
TURN_IDLE_S = 60.0  # a holder that writes nothing for so long does not need the turn
TURN_AWAY_S = 30.0  # ask-holder: a holder whose last connection went may come back within this
TURN_NEVER_LONGER_S = 3600.0  # ask-holder: idle for so long, even a present holder is not asked
TURN_QUEUE_MAX = 64  # actors waiting for one turn; more than that is refused
TURN_TEXT_MAX_CHARS = 200  # of a message or reason, shown in status lines; longer ones are cut

# -- shell reports ----------------------------------------------------------------------------
EXECS_REMEMBERED = 4  # of `exec` without a key, per session: for clients that come back
KEYED_EXECS_REMEMBERED = 64  # with a key: so long a repeat of it runs nothing; then the oldest goes
EXEC_KEY_MAX_CHARS = 256
ATTENDEES_NAMED = 64  # of the operators of a session, in what is told of it
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
JOURNAL_FACTS_BYTES = 8 << 10  # of the reserve, left for the session's end
JOURNAL_BACKLOG_ENTRIES = 256  # what happened and cannot be written; then it is only counted
JOURNAL_RETRY_S = 5.0  # so often the writing of these is tried again
JOURNAL_TAIL_ENTRIES = 64  # looked at by a daemon that carries on: more than one answer's entries
JOURNAL_TYPED_ENTRIES = 1024  # and if need be, for who typed what since the last command: 20 ms
JOURNAL_SEAL_S = 10.0  # the same in time, judged when something is recorded

# -- leases and the coordination point --------------------------------------------------------
LEASE_EMBEDDED_S = 10.0  # one store on one machine: nothing to elect, so it may be short
LEASE_EMBEDDED_RENEW_S = 2.0
LEASE_CLUSTER_S = 30.0  # a NATS leader's failover takes 4 to 9 s; several renewals must fit in
LEASE_CLUSTER_RENEW_S = 5.0
LEASE_DRIFT = 0.01  # of a clock's rate; quartz stays within a hundredth of this, NTP's slew too
LEASE_GRACE_S = 1.0  # for freezing a tree and closing attachments, on both sides of a handover
LEASE_RETRY_S = 1.0  # between looks at a coordination point that does not answer
LEASE_ACQUIRE_S = 5.0  # for a session to get its lease before it begins; then the start is refused
LEASE_RELEASE_S = 3.0  # for giving one back after the end; then it lapses, which takes its length
COORDINATION_CALL_S = 2.0  # for one answer; then a write is *unknown*, a read has failed
COORDINATION_KEY_MAX_CHARS = 200
COORDINATION_VALUE_MAX_BYTES = 64 << 10  # one value; records are far smaller. Refused beyond
COORDINATION_POLL_S = 0.1  # how late a watch may see what another process wrote to the same file
COORDINATION_MARKER_S = 60  # a value that was collected leaves a mark for so long, for watchers
COORDINATION_HEARTBEAT_S = 1.0  # of a watch; three missed ones, and it is begun again

# -- how a host is reached ----------------------------------------------------------------------
HOST_RELAYS_MAX = 16  # it is at all of them at once, and each is told of every session

# -- the relay (docs/relay.md) ------------------------------------------------------------------
RELAY_FRAME_MAX_BYTES = 128 << 10  # one message to a relay: a record of a channel, and some room
RELAY_HOSTS_MAX = 10_000  # connected to one relay; further ones are refused with limit_reached
RELAY_OPERATORS_MAX = 10_000  # the same
RELAY_SESSIONS_MAX = 100_000  # announced at one relay
RELAY_HOST_SESSIONS_MAX = 4096  # announced by one host: all it may hold, and those that just ended
RELAY_EPOCHS_MAX = 1_000_000  # highest epochs remembered; of sessions not here the oldest goes
RELAY_SOCKETS_MAX = 24_000  # connections in all, before anything is known of them; then closed
RELAY_ADDRESS_SOCKETS = 4096  # the same from one address: a company may be behind one
RELAY_HANDSHAKE_S = 10.0  # for a request's head, for TLS, and again for proof or greeting
RELAY_HEARTBEAT_S = 20.0  # of silence, then a ping; no pong within half of it ends the connection
RELAY_CLOSE_S = 2.0  # for the last words to one that is being closed
RELAY_DRAIN_S = 10.0  # for everybody to go elsewhere before a relay ends
RELAY_OPERATOR_STREAMS = 64  # open at once
RELAY_HOST_STREAMS = 8192  # the same to one host
RELAY_SUBSCRIPTIONS = 64  # of one operator
RELAY_ANNOUNCE_MAX = 64  # sessions in one message: each costs the relay a signature check
RELAY_STREAM_WINDOW_BYTES = 256 << 10  # on the way through one stream; more closes it (overrun)
RELAY_BROADCAST_WINDOW_BYTES = 256 << 10  # of a session, taken by none yet; then its host waits
RELAY_OPERATOR_QUEUE_BYTES = 1 << 20  # broadcasts held for one operator; then it is told of a gap
RELAY_CONNECTION_BYTES = 16 << 20  # of streams, held for one connection; then the stream closes
RELAY_HELD_MAX_BYTES = 512 << 20  # for all connections together; then the same, or a gap
RELAY_SOCKET_BYTES = 256 << 10  # handed to the kernel's side of one connection before we queue
RELAY_ANSWERS_MAX = 256  # messages waiting for one connection; then it is not read until it reads
RELAY_FAILED_PROOFS = 10  # of one address at once, and then
RELAY_FAILED_PROOFS_PER_S = 0.1
RELAY_OPENS = 200  # streams opened from one address at once, and then
RELAY_OPENS_PER_S = 50.0
RELAY_RISES = 10_000  # floors raised from one address at once where they are kept, and then
RELAY_RISES_PER_S = 10.0
RELAY_BEAT_S = 1.0  # between two signs of life of one relay to the others
RELAY_SILENCE_S = 5.0  # without one, then a relay is lost: longer than NATS takes to lose a node
RELAY_FIND_S = 1.0  # for other relays to say who has a session
RELAY_ADDRESSES_MAX = 65_536  # addresses whose rates are counted; the least recent one goes

# -- the ssh gateway (docs/ssh.md) ----------------------------------------------------------------
SSH_AUTHORIZED_MAX = 1024  # keys let in; then refused
SSH_CONNECTIONS_MAX = 256  # that have proved a key; then told so and closed
SSH_UNPROVEN_MAX = 64  # that have not yet: strangers take no room from those let in. Then closed
SSH_ADDRESS_UNPROVEN = 16  # of them from one address
SSH_HANDSHAKE_S = 20.0  # to prove a key; a person may have to type a passphrase or touch a token
SSH_KEYS_TRIED = 20  # offers of keys by one connection: an agent offers all it has. Then closed
SSH_CHANNELS_MAX = 10  # of one connection, each a process here; then refused
SSH_WINDOW_BYTES = 256 << 10  # typed and not yet taken by the child; then the client waits
SSH_UNSENT_BYTES = 64 << 10  # of one channel, that its client does not take; then its child waits
SSH_SOCKET_BYTES = 256 << 10  # of one connection, kept by the kernel: a ^C waits behind no more
SSH_READ_BYTES = 64 << 10  # from one child at a time, so that all get their turn
SSH_BEAT_S = 30.0  # of silence, then the client is asked whether it lives
SSH_BEATS_MISSED = 10  # then it does not: long, because an ssh stopped with ~^Z does not answer
SSH_CHILD_GRACE_S = 5.0  # between asking a child to leave (SIGHUP) and ending it (SIGKILL)
SSH_LEAVE_S = 2.0  # for the last words to a client that is sent away; then it is cut off
SSH_RECHECK_S = 1.0  # by then a key that was removed is out, also where it is logged in

# -- grants and invites (docs/grants.md) ----------------------------------------------------------
GRANT_LINKS_MAX = 6  # of one chain: authority, person, device, agent, and two to spare
GRANT_STEPS_MAX = 8  # of a reach; each link may add to the one before
GRANT_RIGHTS_MAX = 32  # of one grant; there are 14, and newer versions may have more
GRANT_LINK_MAX_BYTES = 1024  # of one link; most have 250
GRANT_CHAIN_MAX_BYTES = 4096  # of a chain; as text it fits the 8 KiB that servers allow a header
GRANT_LIFE_MAX_S = 366 * 86400  # of one grant: a lost key is worth nothing in the end
GRANT_SKEW_S = 30  # an issuer's clock may be ahead of the host's by this; a grant's end is exact
GRANT_KNOWN_LINKS = 1024  # links whose signature a host remembers; the least recently used goes
GRANT_KNOWN_CHAINS = 256  # chains that need not be read again; the least recently used goes
REVOCATIONS_MAX = 1800  # of one authority: 64 KiB, one value of a coordination point. Then refused
INVITES_MAX = 1024  # that can still be used, on one host; then refused
INVITE_USES_MAX = 256  # devices of one invite
INVITE_WRONG_MAX = 16  # wrong codes for one invite; then it is closed. Nobody mistypes 128 bits
INVITE_GUESSES_PER_S = 1.0  # wrong codes for one invite, and for all that do not exist together
INVITE_KEPT_S = 30 * 86400  # one that ended is listed for so long, if there is room
DEVICES_MAX = 4096  # grants that somebody came in with; of those that ended the oldest goes
DELEGATES_MAX = 256  # actors that came with what one device handed on: it cannot use up the host's
DEVICE_SEEN_S = 60.0  # when a device was last seen is brought to disk if it is off by this
INVITE_LINK_MAX_CHARS = 512  # a link with a long relay address; more would not fit a QR code well

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
