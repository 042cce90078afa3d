"""Every error that a user or program can get, each with a stable code.

The CLI prints `hold: message (code); hint` and exits with `exit_status`; the wire carries code,
message, hint and `retryable`. Python callers catch by class, all others by `code`. docs/errors.md
lists all of them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.model.state import Ending


class HoldfastError(Exception):
    """Base. `hint` says what to do next; `retryable` that the same call may succeed later."""

    code = "internal"
    exit_status = 70
    retryable = False
    # Of a command that had begun when this happened: what came of its output. None: none had.
    output_bytes: bytes | None = None

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InvalidArgument(HoldfastError):
    """A value is out of range or malformed."""

    code = "invalid_argument"
    exit_status = 64


class PolicyInvalid(HoldfastError):
    """A policy of the gate is not valid; the message says in which line. The one in force stays."""

    code = "policy_invalid"
    exit_status = 65


class ProtocolViolation(HoldfastError):
    """The peer sent something that is not our protocol; the connection is closed."""

    code = "protocol_violation"
    exit_status = 76


class HandshakeFailed(HoldfastError):
    """The two ends of a channel do not match: different keys, another session, or an altered
    message."""

    code = "handshake_failed"
    exit_status = 76


class ChannelBroken(HoldfastError):
    """Something between the two ends of a channel was lost, held back, repeated, moved or altered.
    The channel cannot be used; open a new one."""

    code = "channel_broken"
    exit_status = 76
    retryable = True


class OutputRefused(HoldfastError):
    """A frame of output is not the host's next one. It was not shown; later frames may be
    accepted."""

    code = "output_refused"
    exit_status = 76


class OutputGap(HoldfastError):
    """Output is missing: frames of it, or what rolled off before it could be read."""

    code = "output_gap"
    exit_status = 79  # no other error's: a script can tell that the command itself has ended
    retryable = True


class Fenced(HoldfastError):
    """This incarnation of the session has lost its lease, or a later one exists."""

    code = "fenced"
    exit_status = 75
    retryable = True


class VersionMismatch(HoldfastError):
    """The peers share no protocol version."""

    code = "version_mismatch"
    exit_status = 76


class HostDown(HoldfastError):
    """No host is running for this user and home."""

    code = "host_down"
    exit_status = 69
    retryable = True


class NoSuchMachine(HoldfastError):
    """No machine of that name is known to this client."""

    code = "no_such_machine"
    exit_status = 66


class RelayUnreachable(HoldfastError):
    """No relay answers at that address, or it is not the expected one."""

    code = "relay_unreachable"
    exit_status = 69
    retryable = True


class TicketInvalid(HoldfastError):
    """A host does not let another one bring it this session: the ticket has expired, is of another
    session, or was given to another host."""

    code = "ticket_invalid"
    exit_status = 77


class HostLost(HoldfastError):
    """The connection ended and did not come back within the time allowed."""

    code = "host_lost"
    exit_status = 69
    retryable = True


class SessionMoving(HoldfastError):
    """The session is changing hosts at this moment: for seconds at most, nothing but input is
    taken, and that waits."""

    code = "session_moving"
    exit_status = 75
    retryable = True


class SessionNotMoved(HoldfastError):
    """The session could not be moved to another host. It goes on here, as before."""

    code = "move_failed"
    exit_status = 71


class AlreadyUp(HoldfastError):
    """A host is already running here."""

    code = "already_up"
    exit_status = 75


class NoSuchSession(HoldfastError):
    """No session has this name or id, or you may not see it."""

    code = "no_such_session"
    exit_status = 66


class AmbiguousName(HoldfastError):
    """More than one session id starts with this."""

    code = "ambiguous_name"
    exit_status = 66


class NameTaken(HoldfastError):
    """A live session already has this name."""

    code = "name_taken"
    exit_status = 73


class SessionEnded(HoldfastError):
    """The session has ended; only its record is left."""

    code = "session_ended"
    exit_status = 74


class SessionLost(SessionEnded):
    """The session was lost: with its host or keeper, or its record broke. How it would have ended
    is not known. `ending` says why, and which session follows it."""

    code = "session_lost"
    exit_status = 72

    ending: Ending | None = None


class SessionElsewhere(SessionEnded):
    """The session lives on another host, or that host has everything of it. The message names the
    host."""

    code = "session_elsewhere"
    exit_status = 75


class SessionAsleep(SessionEnded):
    """Nothing of the session runs: its last checkpoint has it, and it can be restored."""

    code = "session_asleep"


class SessionBusy(HoldfastError):
    """The session's shell is not at its prompt, so it cannot take a command line."""

    code = "session_busy"
    exit_status = 75
    retryable = True


class TextAtPrompt(SessionBusy):
    """Text that somebody typed is at the shell's prompt; a command line would be added to it."""

    code = "text_at_prompt"


class TerminalInUse(SessionBusy):
    """A program other than the session's shell reads the terminal."""

    code = "terminal_in_use"


class SessionHalted(HoldfastError):
    """The session is frozen; input is refused, not buffered."""

    code = "session_halted"
    exit_status = 75
    retryable = True


class NoShellIntegration(HoldfastError):
    """The session's main program is not a shell that reports its commands."""

    code = "no_shell_integration"
    exit_status = 69


class CommandNotFound(HoldfastError):
    """The program to run does not exist or cannot be executed."""

    code = "command_not_found"
    exit_status = 127


class LaunchFailed(HoldfastError):
    """The session could not be started; nothing was left behind."""

    code = "launch_failed"
    exit_status = 71


class LevelUnavailable(HoldfastError):
    """This host cannot provide the requested level."""

    code = "level_unavailable"
    exit_status = 69


class NotPermitted(HoldfastError):
    """The actor has no right to do this."""

    code = "not_permitted"
    exit_status = 77


class AccessRevoked(NotPermitted):
    """The actor's access to this session was revoked: it could see it before."""

    code = "access_revoked"


class PortNotListening(HoldfastError):
    """No process of the session's own tree listens on that port."""

    code = "port_not_listening"
    exit_status = 69
    retryable = True


class ConnectionReset(HoldfastError):
    """A forwarded connection was reset, by the program or on the way."""

    code = "connection_reset"
    exit_status = 69
    retryable = True


class NoSuchActor(HoldfastError):
    """No actor has this name or id, or you may not see it."""

    code = "no_such_actor"
    exit_status = 66


class BadSignature(HoldfastError):
    """A claim, a device key, an input or output is not signed with the right key."""

    code = "bad_signature"
    exit_status = 77


class HaltFailed(HoldfastError):
    """The kernel did not freeze or thaw every process in time. The request stays in force."""

    code = "halt_failed"
    exit_status = 75
    retryable = True


class EnvelopeExpired(HoldfastError):
    """The actor had this right here, but it has expired."""

    code = "envelope_expired"
    exit_status = 77


class ActorRevoked(HoldfastError):
    """This actor's access was revoked."""

    code = "actor_revoked"
    exit_status = 77


class GrantInvalid(HoldfastError):
    """The grant is malformed, or not valid for this host, key or time."""

    code = "grant_invalid"
    exit_status = 77


class GrantExpired(HoldfastError):
    """The grant has expired."""

    code = "grant_expired"
    exit_status = 77


class GrantRevoked(HoldfastError):
    """The grant, or one it was delegated from, was revoked."""

    code = "grant_revoked"
    exit_status = 77


class InviteInvalid(HoldfastError):
    """No invite has this id and code, or it was revoked."""

    code = "invite_invalid"
    exit_status = 77


class InviteExpired(HoldfastError):
    """The invite has expired."""

    code = "invite_expired"
    exit_status = 77


class InviteUsed(HoldfastError):
    """The invite has already been used by as many devices as it allows."""

    code = "invite_used"
    exit_status = 77


class LastAdmin(HoldfastError):
    """The change would leave a live session without anybody who may grant rights in it."""

    code = "last_admin"
    exit_status = 77


class RateLimited(HoldfastError):
    """The actor writes faster than its envelope allows, or invite codes are tried too fast."""

    code = "rate_limited"
    exit_status = 75
    retryable = True


class TurnHeld(HoldfastError):
    """Another actor holds the turn; only the holder can write."""

    code = "turn_held"
    exit_status = 75
    retryable = True


class TurnLost(TurnHeld):
    """The turn was taken from this actor while it was writing."""

    code = "turn_lost"
    retryable = False


class TurnNotHeld(HoldfastError):
    """Only the holder of the turn can do this, and the caller does not hold it."""

    code = "turn_not_held"
    exit_status = 75


class GateRefused(HoldfastError):
    """A policy refused it, or nobody approved it; the message says which rule and why."""

    code = "gate_refused"
    exit_status = 77


class GateHeld(HoldfastError):
    """It waits for approval, and nothing is typed behind it until then. ^C withdraws it."""

    code = "gate_held"
    exit_status = 75
    retryable = True


class NoSuchApproval(HoldfastError):
    """No effect waits for approval by that id, as far as the asker may see."""

    code = "no_such_approval"
    exit_status = 66


class ApprovalChanged(HoldfastError):
    """What waits for approval has changed since the approver read it."""

    code = "approval_changed"
    exit_status = 75


class LimitReached(HoldfastError):
    """A limit of the host is reached; the message names it."""

    code = "limit_reached"
    exit_status = 75


class InputUnknown(HoldfastError):
    """The connection was lost before the host said whether it took the input."""

    code = "input_unknown"
    exit_status = 75


class TimedOut(HoldfastError):
    """The wait timed out; what is running continues."""

    code = "timed_out"
    exit_status = 124
    retryable = True


class StorageFailed(HoldfastError):
    """The state directory cannot be written; the message says why."""

    code = "storage_failed"
    exit_status = 74

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message or "what happened could not be recorded", hint=hint)


def why_not(error: OSError) -> str:
    """The system's reason: an error made without a number has it elsewhere."""
    return error.strerror or str(error) or type(error).__name__


class CheckpointFailed(HoldfastError):
    """The session could not be checkpointed; it runs on."""

    code = "checkpoint_failed"
    exit_status = 71


class NoSuchCheckpoint(HoldfastError):
    """No checkpoint has this id, or the session has none."""

    code = "no_such_checkpoint"
    exit_status = 66


class CheckpointInvalid(HoldfastError):
    """A stored checkpoint is incomplete, was altered, or is not of this host or session. Nothing
    was restored from it."""

    code = "checkpoint_invalid"
    exit_status = 65
    chunk = ""  # of the store: the name of the one that is missing or damaged


class RestoreFailed(HoldfastError):
    """The session could not be restored; everything is as it was before."""

    code = "restore_failed"
    exit_status = 71


class FilesChanged(RestoreFailed):
    """Files of the session were changed by others since its checkpoint, and it is not said whether
    they are to be put back. Everything is as it was before."""

    code = "files_changed"


class CheckpointRolledBack(CheckpointInvalid):
    """The store has only older checkpoints of this session than this host saved. The older one is
    used only if it is named by its id."""

    code = "checkpoint_rolled_back"


class CheckpointQuotaReached(LimitReached):
    """The checkpoint would use more than `checkpoint_quota_bytes`. Nothing of it was kept."""

    code = "checkpoint_quota_reached"


class CheckpointStoreDown(HoldfastError):
    """The place where checkpoints are stored does not answer, or refuses."""

    code = "checkpoint_store_down"
    exit_status = 69
    retryable = True


class JournalDamaged(HoldfastError):
    """A journal is damaged; the message says where it first breaks."""

    code = "journal_damaged"
    exit_status = 65


class SessionPruned(HoldfastError):
    """Journal and output of an ended session were removed from disk, by the retention settings."""

    code = "session_pruned"
    exit_status = 65


class CoordinationDown(HoldfastError):
    """The coordination point does not answer, so what it stores is not known."""

    code = "coordination_down"
    exit_status = 69
    retryable = True


class Unsupported(HoldfastError):
    """This host or version does not know the request."""

    code = "unsupported"
    exit_status = 69


def _all(kind: type[HoldfastError]) -> list[type[HoldfastError]]:
    return [kind, *(leaf for sub in kind.__subclasses__() for leaf in _all(sub))]


def by_code() -> dict[str, type[HoldfastError]]:
    """Every error class by its code."""
    return {kind.code: kind for kind in _all(HoldfastError)}


def from_code(code: str, message: str, hint: str, ending: Ending | None = None) -> HoldfastError:
    """The error that a peer sent; an unknown code (a newer peer) becomes the base class."""
    error = by_code().get(code, HoldfastError)(message, hint=hint)
    if isinstance(error, SessionLost):
        error.ending = ending
    return error


def session_over(
    what: str, ending: Ending | None, *, how: str = "has ended", hint: str = ""
) -> SessionEnded:
    """That a session has ended or, which is not the same, was lost. `what`: the session; `how`:
    the verb for one that ended."""
    if ending is not None and ending.moved_to:
        return SessionElsewhere(
            f"{what} has moved to {ending.moved_to}",
            hint=f"`hold attach {ending.moved_to}/NAME` attaches to it there",
        )
    if ending is not None and ending.checkpoint:
        restore = f"`hold restore {ending.checkpoint}` restores it"
        return SessionAsleep(f"{what} is asleep", hint=restore)
    if ending is None or ending.lost is None:
        return SessionEnded(f"{what} {how}: {ending}" if ending else f"{what} {how}", hint=hint)
    follows = f"`hold attach {ending.successor}` attaches to its successor"
    lost = SessionLost(
        f"{what} was lost: {ending.lost}", hint=follows if ending.successor else hint
    )
    lost.ending = ending
    return lost


def ending_of(error: HoldfastError) -> Ending | None:
    """What a peer is told besides: of a lost session, why, and its successor."""
    return error.ending if isinstance(error, SessionLost) else None
