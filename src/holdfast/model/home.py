"""Where a host keeps its state, configuration and sockets: a pure function of environment and user,
so that client and host agree without communicating."""

from __future__ import annotations

from holdfast.model.errors import InvalidArgument
from holdfast.model.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SOCKET_PATH_MAX = 107  # bytes in sun_path, less its terminating zero


class Home(Record):
    """The three places. `HOLDFAST_HOME` puts them all under one directory, so that several hosts
    can run side by side."""

    state: str
    config: str
    run: str

    @property
    def socket(self) -> str:
        return f"{self.run}/hold.sock"

    @property
    def log(self) -> str:
        return f"{self.state}/host.log"

    def checked(self) -> Home:
        if len(self.socket.encode()) > _SOCKET_PATH_MAX:
            raise InvalidArgument(
                f"the socket path {self.socket} is longer than the kernel allows",
                hint="set HOLDFAST_HOME to a shorter directory",
            )
        return self


SYSTEM = Home("/var/lib/holdfast", "/etc/holdfast/config.toml", "/run/holdfast")


def home_of(environment: Mapping[str, str], uid: int) -> Home:
    """The home in which this user's commands start and find a host."""
    chosen = environment.get("HOLDFAST_HOME")
    if chosen:
        if not chosen.startswith("/"):
            raise InvalidArgument("HOLDFAST_HOME must be an absolute path")
        chosen = chosen.rstrip("/") or "/"
        return Home(chosen, f"{chosen}/config.toml", f"{chosen}/run").checked()
    if uid == 0:
        return SYSTEM
    user = environment.get("HOME", "")
    if not user.startswith("/"):
        raise InvalidArgument("HOME is not set", hint="set it, or set HOLDFAST_HOME")
    state = environment.get("XDG_STATE_HOME", f"{user}/.local/state") + "/holdfast"
    config = environment.get("XDG_CONFIG_HOME", f"{user}/.config") + "/holdfast/config.toml"
    # Not $XDG_RUNTIME_DIR: it is removed at the user's last logout, and a session that survives
    # the logout must stay reachable (S1).
    return Home(state, config, f"{state}/run").checked()


def keys_of(environment: Mapping[str, str]) -> str:
    """Where this user's commands keep the private keys of the actors they may act as."""
    return f"{_client_config(environment)}/actor-keys"


def machines_of(environment: Mapping[str, str]) -> str:
    """Where this user's commands keep their list of other machines."""
    return f"{_client_config(environment)}/machines.json"


def _client_config(environment: Mapping[str, str]) -> str:
    chosen = environment.get("HOLDFAST_HOME", "").rstrip("/")
    if chosen:
        return chosen
    config = environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"
    return f"{config}/holdfast"


def is_within(path: str, directory: str) -> bool:
    """Whether a path is that directory, or below it."""
    return f"{path.rstrip('/')}/".startswith(f"{directory.rstrip('/')}/")
