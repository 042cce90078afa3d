"""What `hold up` says once the host serves: a link by which another device comes in."""

from __future__ import annotations

import shutil
import sys

from holdfast.model.home import Home
from holdfast.sdk.client import Host
from holdfast.sdk.reaching import own_reached, relays
from holdfast.wire import admission as ad

_REACHED_S = 10.0  # for the host's own relay to start and be dialled: it takes half a second
_EXPIRES_S = 8 * 3600.0
_LASTS_S = 30 * 86400.0


def say_how(home: Home) -> None:
    """One line, for who did not stay to read more."""
    with Host(home.socket, client="hold up") as host:
        if relays(host):
            print("the host is up; `hold invite --all --role execute` makes a link to it")


def show_link(home: Home) -> None:
    """For one device, to every session, to act and not to manage."""
    with Host(home.socket, client="hold up") as host:
        found = own_reached(host, _REACHED_S)
        if not found:
            return
        if not any(each.reached for each in found):
            why = "; ".join(f"{each.address or 'its own'}: {each.said}" for each in found)
            print(f"no relay is reached yet, so there is no link: {why}", file=sys.stderr)
            return
        request = ad.MakeInvite(0, (), ("execute",), _EXPIRES_S, _LASTS_S, 1, 1)
        made = host.ask(request, ad.InviteMade)
    print("for another device, once, within 8 hours, to use every session here:\n")
    print(f"  hold join '{made.link}'\n", flush=True)
    if sys.stdout.isatty():
        from holdfast.cli.qr import drawn

        print(drawn(made.link, shutil.get_terminal_size().columns), flush=True)
    print(
        f"`hold invite revoke {made.invite.invite[:8]}` takes it back; `hold invite` makes others"
    )
