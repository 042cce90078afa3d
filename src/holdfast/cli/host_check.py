"""What keeps a host that is up from its work: `hold up` and `hold daemon restart` say it, and fail.
The host stays up: it serves what it can, and goes on trying."""

from __future__ import annotations

from holdfast.model.errors import HostDown, LaunchFailed, RelayUnreachable
from holdfast.model.home import Home
from holdfast.sdk.client import Host
from holdfast.sdk.reach.host_relays import own_started

_REACHED_S = 10.0  # for the host's own relay to start and be dialled: it takes half a second
# Findings without which no session can be started, and the error that it is. A disk that fills
# up is not one: every start finds out for itself whether its own room is there.
_NEEDED = {"init": LaunchFailed}


def check_works(host: Host) -> None:
    """Raises when it cannot start sessions, or its own relay cannot listen as it was asked to."""
    for each in host.host().findings:
        if not each.ok and (error := _NEEDED.get(each.name)):
            raise error(
                f"the host is up, but it cannot start sessions: {each.detail}",
                hint=f"{each.remedy}; `hold doctor` shows the rest",
            )
    failed = [each for each in own_started(host, _REACHED_S) if not each.reached]
    if failed:
        raise RelayUnreachable(
            f"the host is up, but its relay {failed[0].said}",
            hint="free that port, or choose another: `hold down`, `hold up --listen`; or `relay` "
            "in config.toml and `hold daemon restart`",
        )


def check_answers(home: Home, pid: int | None) -> None:
    """Raises when the host that runs here does not answer; `pid` is its daemon's."""
    try:
        Host(home.socket, client="hold up").close()
    except HostDown as error:
        who = f"daemon {pid}" if pid is not None else "its daemon"
        raise HostDown(
            f"a host runs here, but {who} does not answer; its log is {home.log}",
            hint="`hold daemon restart` replaces the daemon; sessions carry on",
        ) from error
