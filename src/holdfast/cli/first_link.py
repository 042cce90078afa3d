"""What `hold up` says once the host serves: a link with which another device of the same
person joins. And what there is to say about a link that no other device can open."""

from __future__ import annotations

import os
import sys

from holdfast.cli.text.qr_code import print_code
from holdfast.model.home import Home, home_of
from holdfast.sdk.client import Host
from holdfast.sdk.connection import target_host
from holdfast.sdk.reach.host_relays import only_here, relays, wait_until_reached
from holdfast.wire.messages import admission as ad

_REACHED_S = 10.0  # for the host's own relay to start and be dialled: it takes half a second
_EXPIRES_S = 8 * 3600.0
_LASTS_S = 30 * 86400.0

# Who may not seize or halt cannot stop an agent: on a device of one's own that must not be missing.
OWN_DEVICE = "hold invite --all --role admin"


def say_how(home: Home) -> None:
    """One line, for a caller that does not stay."""
    with Host(home.socket, client="hold up") as host:
        if relays(host):
            print(f"the host is up; `{OWN_DEVICE}` makes a link to it")


def show_link(home: Home) -> None:
    """For one device of whoever started this host, which may do what they may."""
    with Host(home.socket, client="hold up") as host:
        found = wait_until_reached(host, _REACHED_S)
        if not found:
            return
        if not any(each.reached for each in found):
            why = "; ".join(f"{each.address or 'its own'}: {each.said}" for each in found)
            print(f"no relay is reached yet, so there is no link: {why}", file=sys.stderr)
            return
        request = ad.MakeInvite(0, (), ("admin",), _EXPIRES_S, _LASTS_S, 1, 1)
        made = host.ask(request, ad.InviteMade)
    print(
        "for one more device of yours, once, within 8 hours. For 30 days it may do here what you "
        "may (admin):\nuse every session, seize, halt, end, invite. Give it to nobody else.\n"
    )
    print(f"  hold join '{made.link}'\n", flush=True)
    if sys.stdout.isatty():
        print_code(made.link)
    print(
        f"`hold invite revoke {made.invite.invite[:8]}` takes it back; `{OWN_DEVICE}` makes another"
    )
    say_if_only_here(made.link)


def say_if_only_here(link: str) -> None:
    """A code that nothing but this machine can open looks like any other."""
    if only_here(link):
        print("only this machine can open this link: the relay listens for no other")
        print(f"to change that, {how_to_listen('0.0.0.0')}")


def how_to_listen(where: str) -> str:
    """How a host that runs gets its own relay to listen at another address."""
    home = home_of(os.environ, os.getuid())
    config = home.config if target_host() == home.socket else "its config.toml"
    return f'put `relay = "{where}"` into {config}, then `hold daemon restart` (sessions carry on)'
