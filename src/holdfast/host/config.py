"""config.toml: what a user may set. Unknown names are an error, so that a typo is seen."""

from __future__ import annotations

import logging
import tomllib

from holdfast.core.access.user_quotas import UserQuotas
from holdfast.core.continuity.idle import IdlePolicy
from holdfast.core.turn.policy import DEFAULT_POLICY, policy
from holdfast.dial.address import relay_address
from holdfast.host.coordination_point import terms_of
from holdfast.model.errors import InvalidArgument
from holdfast.model.limits import (
    CAPTURE_MAX_BYTES,
    CHECKPOINT_QUOTA_BYTES,
    IDLE_CONTAINED_S,
    IDLE_MOVABLE_S,
    IDLE_PLAIN_S,
    IDLE_RESIDENT_MAX,
    IDLE_WARNING_S,
    METRICS_TOKEN_MIN_CHARS,
    RETENTION_BYTES,
    RETENTION_DAYS,
    RING_DEFAULT_BYTES,
    RING_MAX_BYTES,
    RING_MIN_BYTES,
    SCROLLBACK_MAX_LINES,
    USER_CONNECTIONS,
    USER_DISK_BYTES,
    USER_RING_BYTES,
    USER_SESSIONS,
)
from holdfast.model.listening import listening
from holdfast.model.record import Malformed, Record
from holdfast.model.state import Level

log = logging.getLogger(__name__)


class Config(Record):
    """Settings of a host; docs/configuration.md documents each."""

    ring_bytes: int = RING_DEFAULT_BYTES  # output held per session
    scrollback_lines: int = SCROLLBACK_MAX_LINES  # lines above the screen kept for views
    level: Level | None = None  # the highest level to use; default: the highest there is
    turn_policy: str = DEFAULT_POLICY  # of new sessions
    shell: str = ""  # default shell of new sessions; default: the user's own
    coordination: str = ""  # where leases are kept; default: a file of this host
    lease_s: float | None = None  # length of a lease; default: 10, with NATS 30
    relays: tuple[str, ...] = ()  # where this host can be reached from elsewhere
    admit_hosts: tuple[str, ...] = ()  # keys of hosts whose sessions may be brought here
    labels: tuple[str, ...] = ()  # what `hold move --require label=…` finds this host by
    relay: str = ""  # where its own listens, or off; default: on this machine only
    user_connections: int = USER_CONNECTIONS  # of one unix user other than root and the host's
    user_sessions: int = USER_SESSIONS  # live, of the same
    user_ring_bytes: int = USER_RING_BYTES  # of all rings of these
    user_disk_bytes: int = USER_DISK_BYTES  # of these sessions and their ended ones
    retention_days: float = RETENTION_DAYS  # ended sessions are kept for so long; 0: forever
    retention_bytes: int = RETENTION_BYTES  # and together use at most so much disk; 0: any amount
    checkpoint_store: str = ""  # a directory or a URL; default: in the host's state directory
    checkpoint_quota_bytes: int = CHECKPOINT_QUOTA_BYTES  # of all checkpoints; 0: any amount
    capture_max_bytes: int = CAPTURE_MAX_BYTES  # of files, with one checkpoint; 0: none
    idle_movable_s: float = IDLE_MOVABLE_S  # unused for so long: evicted; 0: never
    idle_contained_s: float = IDLE_CONTAINED_S  # reported, and ended with idle_end; 0: never
    idle_plain_s: float = IDLE_PLAIN_S  # the same
    idle_warning_s: float = IDLE_WARNING_S  # between the warning and that
    idle_end: bool = False  # what cannot be evicted is ended
    idle_resident_max: int = IDLE_RESIDENT_MAX  # evictable idle sessions in memory; 0: any number
    metrics_token: str = ""  # who has it may read /metrics of the host's own relay

    @property
    def user_quotas(self) -> UserQuotas:
        return UserQuotas(
            self.user_connections, self.user_sessions, self.user_ring_bytes, self.user_disk_bytes
        )

    @property
    def idle_policy(self) -> IdlePolicy:
        after: dict[str, float] = {
            Level.PLAIN: self.idle_plain_s,
            Level.CONTAINED: self.idle_contained_s,
            Level.MOVABLE: self.idle_movable_s,
        }
        return IdlePolicy(after, self.idle_warning_s, self.idle_end, self.idle_resident_max)

    def checked(self) -> Config:
        check_ring(self.ring_bytes)
        if not 0 <= self.scrollback_lines <= 1_000_000:
            raise InvalidArgument("scrollback_lines must be 0 to 1000000")
        if not 0 <= self.retention_days < float("inf") or self.retention_bytes < 0:
            raise InvalidArgument("retention_days and retention_bytes must be 0 or more")
        idle = (*self.idle_policy.after_s.values(), self.idle_warning_s, self.idle_resident_max)
        if not all(0 <= each < float("inf") for each in idle):
            raise InvalidArgument("what begins with idle_ must be 0 or more")
        if min(self.checkpoint_quota_bytes, self.capture_max_bytes) < 0:
            raise InvalidArgument("checkpoint_quota_bytes and capture_max_bytes must be 0 or more")
        if self.checkpoint_store and not _is_place(self.checkpoint_store):
            raise InvalidArgument(
                "checkpoint_store must be an absolute path or a URL such as s3://bucket/path"
            )
        if self.metrics_token and len(self.metrics_token) < METRICS_TOKEN_MIN_CHARS:
            raise InvalidArgument(
                f"metrics_token must have at least {METRICS_TOKEN_MIN_CHARS} characters",
                hint="`openssl rand -hex 32` makes one",
            )
        if min(self.user_quotas.pack().values()) < 0:
            raise InvalidArgument("a quota of unix users is 0 or more")
        for key in self.admit_hosts:
            if len(key) != 64 or set(key) - set("0123456789abcdef"):
                raise InvalidArgument(
                    "admit_hosts has keys of hosts: 64 hexadecimal digits each",
                    hint="`hold host --key` on the other host prints its own",
                )
        policy(self.turn_policy)
        terms_of(self.coordination, self.lease_s)
        for address in self.relays:
            relay_address(address)
        listening(self.relay)
        return self


def _is_place(text: str) -> bool:
    return text.startswith("/") or "://" in text


def check_ring(size: int) -> int:
    if not RING_MIN_BYTES <= size <= RING_MAX_BYTES:
        raise InvalidArgument(f"a ring must be {RING_MIN_BYTES} to {RING_MAX_BYTES} bytes")
    return size


def load(path: str) -> Config:
    """The configuration, or the defaults when there is no file."""
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except FileNotFoundError:
        return Config()
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidArgument(f"cannot read {path}: {error}") from error
    unknown = set(data) - set(Config._fields)
    if unknown:
        raise InvalidArgument(f"{path}: unknown setting {sorted(unknown)[0]!r}")
    try:
        return Config.unpack(data, path).checked()
    except Malformed as error:
        raise InvalidArgument(str(error)) from error


def carried(path: str, *, first: bool) -> tuple[Config, str]:
    """The same, and what is wrong with it. A wrong setting stops a host from starting, but never a
    running one from carrying on."""
    try:
        return load(path), ""
    except InvalidArgument as error:
        if first:
            raise
        log.error("%s; using the defaults", error.message)
        return Config(), error.message
