"""A `run` request becomes a live session, or an error with nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import secrets
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.adapters.halt import cgroup
from holdfast.adapters.seccomp import filter as seccomp
from holdfast.adapters.session_memory.input_ledger import InputLedger
from holdfast.adapters.session_memory.output_ring import Ring, make_conduit
from holdfast.adapters.shell import integration as shell
from holdfast.core.access.host_rules import check_may_run_as, check_may_show_keys
from holdfast.host import config, levels
from holdfast.host.clock import now
from holdfast.host.gate.start_judge import ProposedStart, judge_start
from holdfast.host.keeper_link import KeeperLink
from holdfast.host.session import fencing_token
from holdfast.host.session.discontinuity import begin_journal, lineage_of
from holdfast.host.session.live_session import LiveSession
from holdfast.host.session.parcel import SessionFds, SessionSpec, StateBlob
from holdfast.host.session.snapshot_place import SnapshotPlace
from holdfast.host.session_store import Stored
from holdfast.keeper.boottime import boot_id
from holdfast.model.actor import Actor, check_name
from holdfast.model.errors import (
    InvalidArgument,
    LevelUnavailable,
    LimitReached,
)
from holdfast.model.home import Home, is_within, keys_of
from holdfast.model.ids import SessionId
from holdfast.model.limits import (
    ARGV_KEPT_MAX_BYTES,
    ARGV_MAX_BYTES,
    CHECKPOINT_EVERY_MIN_S,
    LABELS_MAX,
)
from holdfast.model.size import DEFAULT_SIZE
from holdfast.model.spec import LaunchSpec, Place
from holdfast.model.state import Level
from holdfast.wire.messages.session import Run

if TYPE_CHECKING:
    from holdfast.host.daemon import Daemon

_FIRST_EPOCH = 1
_BLOB_MAX_BYTES = 96 << 10  # of a session's state at its start; with its commands it must fit one
# message to its keeper (keeper.protocol.MESSAGE_MAX_BYTES)
_NONCE_FD = 9  # where the shell finds its nonce: the highest number every shell can name
_SHELLS = {"bash", "zsh", "fish", "sh", "dash", "ksh", "mksh", "tcsh", "csh"}
# The client's own terminal and multiplexer are not the session's.
_NOT_INHERITED = {
    "TMUX", "TMUX_PANE", "STY", "WINDOW", "WINDOWID", "COLUMNS", "LINES", "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "SSH_TTY", "TERMCAP", "OLDPWD", "SHLVL", "_",
}  # fmt: skip
# What they name is hidden in a contained session; there a command acts as the actor behind it.
_NEED_KEYS = {"HOLDFAST_AS", "HOLDFAST_GRANT"}


Carry = Callable[[SessionId], None]  # what a session takes over from the one that it follows


def _nothing(_: SessionId) -> None: ...


async def start(
    daemon: Daemon, actor: Actor, run: Run, carry_over: Carry = _nothing
) -> LiveSession:
    """Start what was asked for, as the unix user whose actor asked. `carry_over` is called with its
    id before anything of it is judged or runs."""
    user = _user(actor, run.user, daemon.uid)
    if run.with_keys:
        check_may_show_keys(daemon.actors.authority, actor, now())
    argv = run.argv or (_default_shell(daemon.config.shell, user, run),)
    _check(run, argv)
    level = _level(daemon.config.level, run.level, await daemon.highest_level())
    if run.rehomeable and not level.reaches(Level.CONTAINED):
        raise LevelUnavailable(
            f"at level {level} a re-homeable session could not be stopped for sure",
            hint="--level contained; `hold doctor` says what this host lacks for it",
        )
    if run.checkpoint_every_s and not level.reaches(Level.MOVABLE):
        raise LevelUnavailable(
            f"at level {level} a session cannot be checkpointed",
            hint="--level movable; `hold doctor` says what this host lacks for it",
        )
    ring_bytes = config.check_ring(run.ring_bytes or daemon.config.ring_bytes)
    async with daemon.usage.place(actor.uid, user.pw_uid, ring_bytes):
        name = daemon.registry.reserve(user.pw_uid, run.name, argv[0])
        try:
            return await _start(daemon, actor, run, user, argv, level, name, ring_bytes, carry_over)
        finally:
            daemon.registry.settle(user.pw_uid, name)


async def _start(
    daemon: Daemon,
    actor: Actor,
    run: Run,
    user: pwd.struct_passwd,
    argv: tuple[str, ...],
    level: Level,
    name: str,
    ring_bytes: int,
    carry_over: Carry,
) -> LiveSession:
    size = (run.size or DEFAULT_SIZE).checked()
    before = _predecessor(daemon, actor, run.predecessor)
    session = daemon.store.create()
    cwd = run.cwd or user.pw_dir
    with daemon.policies.starting(session, user.pw_uid), contextlib.ExitStack() as undo:
        undo.callback(daemon.store.forget, session)
        carry_over(session)
        judged = await judge_start(
            daemon.gate_judge,
            daemon.actors.authority,
            actor,
            ProposedStart(
                session,
                name,
                run.labels,
                level,
                _FIRST_EPOCH,
                argv,
                cwd,
                run.workspace or cwd,
                run.env,
                run.gate,
            ),
            now(),
        )
        leasing = await daemon.leases.acquire(session) if run.rehomeable else None
        if leasing is not None:
            undo.callback(leasing.release)
        epoch = leasing.runner.epoch if leasing is not None else _FIRST_EPOCH
        fencing_token.write(daemon.home, session, epoch)
        undo.callback(fencing_token.remove, daemon.home, session)
        env = _environment(
            run, user, session, name, fencing_token.environment(daemon.home, session, epoch)
        )
        snapshots = SnapshotPlace(daemon.home, session, user.pw_uid)
        snapshots.make(user.pw_gid)
        undo.callback(snapshots.remove)
        env |= snapshots.environment()
        hidden = what_is_hidden(daemon.home, user, env, level, with_keys=run.with_keys)
        if hidden:
            env = {key: value for key, value in env.items() if key not in _NEED_KEYS}
        # Should it be lost, its successor begins with the same.
        kept = run.replace(argv=argv, cwd=cwd, env=env, size=size, level=level)
        # Descriptors that are ours to close until the live session has them.
        ours = undo.enter_context(contextlib.ExitStack())
        bell, nonce = -1, ""
        inherit: dict[int, int] = {}
        bell_path = levels.bell_path(daemon.home, session)
        integration = shell.integrate(argv, env, bell_path, _NONCE_FD)
        if integration is not None:
            nonce = secrets.token_hex(16)
            bell = shell.make_fifo(bell_path, user.pw_uid, user.pw_gid)
            undo.callback(levels.remove_bell, daemon.home, session)
            shell.make_state_file(shell.state_path(bell_path), user.pw_uid, user.pw_gid)
            ours.callback(os.close, bell)
            inherit[_NONCE_FD] = shell.nonce_pipe(nonce)
        journal = begin_journal(
            daemon.store,
            session,
            actor.id,
            epoch,
            name=name,
            argv=argv,
            level=level,
            user=user.pw_name,
            labels=run.labels,
            cols=size.cols,
            rows=size.rows,
            **(lineage_of(daemon.store, before.info.id) if before is not None else {}),
        )
        ours.callback(journal.close)
        policies = daemon.policies.entries_for(session, run.labels)
        for by, policy in policies:
            journal.record(now(), epoch, by, policy)
        if judged is not None:
            journal.record(now(), epoch, actor.id, judged)
        # Before anything runs that they tell of.
        await _all_done(journal.sync, partial(daemon.store.save_launch, session, kept))
        spec = LaunchSpec(
            session=session,
            argv=integration.argv if integration else argv,
            env={**env, **(integration.env if integration else {})},
            cwd=cwd,
            uid=user.pw_uid,
            gid=user.pw_gid,
            groups=tuple(os.getgrouplist(user.pw_name, user.pw_gid)),
            size=size,
            level=level,
            hidden=hidden,
            kept=(daemon.home.run,) if hidden else (),
            gate=run.gate and level.reaches(Level.CONTAINED) and not seccomp.unavailable(),
        )
        try:
            launched = await daemon.launcher.launch(spec, inherit)
        finally:
            for fd in inherit.values():
                os.close(fd)
        # Closed before anything is deposited, the keeper ends what was launched.
        undo.callback(_remove_group, launched.place)
        keeper = KeeperLink(socket.socket(fileno=launched.keeper), launched.keeper_pid)
        ours.callback(keeper.close)
        ours.callback(os.close, launched.master)
        ours.callback(os.close, launched.pidfd)
        for fd in {launched.gate, launched.gate_page} - {-1}:
            ours.callback(os.close, fd)
        ring = Ring.create(ring_bytes)
        ours.callback(ring.close)
        input_conduit = make_conduit()
        ours.callback(os.close, input_conduit)
        fds = SessionFds(
            *(launched.master, launched.pidfd, ring.memfd, ring.conduit, input_conduit, bell),
            *(launched.gate, launched.gate_page),
        )
        known = SessionSpec(
            id=session,
            name=name,
            uid=user.pw_uid,
            user=user.pw_name,
            argv=argv,
            cwd=cwd,
            level=level,
            epoch=epoch,
            created_at=time.time(),
            place=launched.place,
            shell=integration.kind if integration else "",
            is_shell=(len(argv) == 1 and _program(argv) in _SHELLS) or integration is not None,
            nonce=nonce,
            labels=run.labels,
            created_by=actor.id,
            exact_line_key=integration.exact_line_key if integration else b"",
            gate_keys=integration is not None,
            workspace=run.workspace or cwd,
            checkpoint_every_s=run.checkpoint_every_s,
            capture=_captured(run),
        )
        blob = StateBlob(known, size).blob()
        if len(blob) > _BLOB_MAX_BYTES:
            raise LimitReached("command and mounts are too long to be kept")
        if leasing is not None:
            leasing.check(epoch)  # the launch took its time
        ours.pop_all()
        ledger = InputLedger(ring, input_conduit)
        parcel = StateBlob(known, size)
        live = LiveSession(daemon, keeper, parcel, fds, ring, ledger, journal, leasing)
        # It stops watching the descriptors before it closes them.
        undo.callback(live.close, keep=False)
        for by, policy in daemon.policies.entries_since(policies, session, run.labels):
            live.record_policy(by, policy)
        live.start()
        daemon.store.save_spec(Stored(live.info(), user.pw_uid, boot_id()))
        live.deposit()
        undo.pop_all()
    daemon.registry.add(live)
    daemon.watch(live)
    if before is not None:
        daemon.lost.followed(before, session, user.pw_uid)
    daemon.session_began(live)
    return live


async def _all_done(*writes: Callable[[], None]) -> None:
    """Side by side, for each waits for the disk. None is under way any more when one has failed."""
    waiting = [asyncio.to_thread(write) for write in writes]
    for failed in await asyncio.gather(*waiting, return_exceptions=True):
        if failed is not None:
            raise failed


def _predecessor(daemon: Daemon, actor: Actor, predecessor: str) -> Stored | None:
    if not predecessor:
        return None
    found = daemon.registry.find(actor, predecessor)
    if not isinstance(found, Stored):
        raise InvalidArgument(
            f"{found.spec.name} lives; a session follows one that has ended",
            hint=f"`hold attach {found.spec.name}` joins it",
        )
    return found


def _remove_group(place: Place) -> None:
    """The start failed after the launch: the tree must not outlive it."""
    if place.cgroup:
        cgroup.kill(place.cgroup)
        cgroup.remove(place.cgroup)


def _user(actor: Actor, wanted: str, host_uid: int) -> pwd.struct_passwd:
    try:
        user = pwd.getpwnam(wanted) if wanted else pwd.getpwuid(actor.uid)
    except KeyError:
        raise InvalidArgument(f"there is no unix user {wanted or actor.uid!r}") from None
    check_may_run_as(actor, user.pw_uid, user.pw_name, host_uid)
    return user


def _default_shell(configured: str, user: pwd.struct_passwd, run: Run) -> str:
    own = run.env.get("SHELL", "") if not run.user else ""
    return configured or own or user.pw_shell or "/bin/sh"


def _check(run: Run, argv: tuple[str, ...]) -> None:
    words = [*argv, *run.env, *run.env.values(), run.cwd, run.workspace, *run.capture]
    if any("\0" in word for word in words):
        raise InvalidArgument("a command or environment cannot contain a zero byte")
    if any(not key or "=" in key for key in run.env):
        raise InvalidArgument("an environment name is empty or contains '='")
    if not argv[0]:
        raise InvalidArgument("the command is empty")
    if sum(len(os.fsencode(word)) + 1 for word in words) > ARGV_MAX_BYTES:
        raise LimitReached(f"command and environment are over {ARGV_MAX_BYTES} bytes")
    if (
        sum(len(os.fsencode(word)) + 1 for word in (*argv, run.cwd, run.workspace, *run.capture))
        > ARGV_KEPT_MAX_BYTES
    ):
        raise LimitReached(f"the command is over {ARGV_KEPT_MAX_BYTES} bytes")
    for label in run.labels:
        check_name(label, "label")
    if len(run.labels) > LABELS_MAX:
        raise LimitReached(f"more than {LABELS_MAX} labels")
    if run.checkpoint_every_s and not run.checkpoint_every_s >= CHECKPOINT_EVERY_MIN_S:
        raise InvalidArgument(
            f"checkpoints are at least {CHECKPOINT_EVERY_MIN_S:g} s apart",
            hint="--checkpoint-every 5m",
        )
    if run.cwd and not run.cwd.startswith("/"):
        raise InvalidArgument("the working directory must be an absolute path")
    if run.workspace and not run.workspace.startswith("/"):
        raise InvalidArgument("the workspace must be an absolute path")
    for path in run.capture:
        if not (path.startswith("/") and os.path.isdir(path)):
            raise InvalidArgument(
                f"there is no directory {path} that could be captured", hint="--capture DIR"
            )


def _captured(run: Run) -> tuple[str, ...]:
    """Really, so that no link leads elsewhere later; of one inside another only that."""
    declared = (*run.capture, *((run.workspace,) if run.workspace else ()))
    found = sorted({os.path.realpath(path) for path in declared})
    return tuple(
        path
        for path in found
        if not any(other != path and is_within(path, other) for other in found)
    )


def _level(configured: Level | None, wanted: Level | None, highest: Level) -> Level:
    if configured is not None and highest.reaches(configured):
        highest = configured
    if wanted is not None and not highest.reaches(wanted):
        raise LevelUnavailable(
            f"this host cannot start a session at level {wanted}; its highest is {highest}",
            hint="`hold doctor` says what is missing and how to add it",
        )
    return wanted or highest


def _environment(
    run: Run, user: pwd.struct_passwd, session: SessionId, name: str, more: dict[str, str]
) -> dict[str, str]:
    dropped = () if run.user else _NOT_INHERITED
    base = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    base |= {key: value for key, value in run.env.items() if key not in dropped}
    return {
        **base,
        "HOME": user.pw_dir if run.user else base.get("HOME", user.pw_dir),
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "SHELL": base.get("SHELL") or user.pw_shell or "/bin/sh",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "HOLDFAST_SESSION": session,
        "HOLDFAST_NAME": name,
        **more,
    }


def what_is_hidden(
    home: Home, user: pwd.struct_passwd, env: dict[str, str], level: Level, *, with_keys: bool
) -> tuple[str, ...]:
    """The directories of holdfast that a contained session does not see: the host's state, the
    sockets of keepers, and where its user keeps keys of actors."""
    if with_keys or not level.reaches(Level.CONTAINED):
        return ()
    if is_within(user.pw_dir, home.state):
        raise InvalidArgument(
            f"the home directory of {user.pw_name} is in {home.state}, the state of this host, "
            "which sessions do not see",
            hint="set HOLDFAST_HOME to a directory of its own",
        )
    own = [os.path.dirname(keys_of(each)) for each in (env, {"HOME": user.pw_dir})]
    return tuple(sorted({home.state, f"{home.run}/keepers", *own}, key=len))  # parents first


def _program(argv: tuple[str, ...]) -> str:
    return argv[0].rsplit("/", 1)[-1].lstrip("-")
