"""`hold host`: at which relays this host can be met."""

from __future__ import annotations

import sys

from holdfast.cli.arguments import Options, Parser, print_json, verb_parser
from holdfast.cli.start_host import started_host
from holdfast.cli.text.table import table
from holdfast.model.info import RelayState
from holdfast.sdk.reach.host_relays import settled
from holdfast.wire.messages import relays as reach

SUMMARY = "set or show the relays through which this host is reached"

EXIT_UNREACHED = 1
_WAIT_S = 10.0


def parser() -> Parser:
    parser = verb_parser(
        "host",
        "Show the relays this host has dialled, where each was configured, and whether it is "
        "reached. It is at all of them at once, so losing one loses nobody's way in; it opens no "
        "port for them. --relay adds one, --no-relay leaves one: at once, and kept. A host is "
        "started if none runs. Exits with 1 when one that was set is not reached; the host goes on "
        "trying.",
        "  hold host --relay https://relay.example\n"
        "  hold host --relay https://192.168.1.5:7420#sha256:0123…   a certificate of its own\n"
        "  hold host --no-relay https://relay.example\n"
        "  hold host --json",
    )
    parser.add_values("--relay", "URL", "be at this relay too (may be repeated)")
    parser.add_values("--no-relay", "URL", "leave this one (may be repeated)")
    parser.add_flag("--key", help="print only this host's public key, as `admit_hosts` takes it")
    parser.add_json()
    return parser


def run(options: Options) -> int:
    with started_host("hold host") as host:
        if options.key:
            print(host.connection.welcome.host_key.hex())
            return 0
        if options.relay or options.no_relay:
            request = reach.SetRelays(0, tuple(options.relay), tuple(options.no_relay))
            host.ask(request, reach.Relays)
        # Only after a change is it worth waiting for its outcome.
        relays = settled(host, _WAIT_S if options.relay else 0.0)
    _show(relays, as_json=options.json)
    unreached = [each for each in relays if each.source == "set" and not each.reached]
    if not options.relay or not unreached:
        return 0
    if not options.json:
        print("hold host: not all are reached; the host goes on trying", file=sys.stderr)
    return EXIT_UNREACHED


def _show(relays: tuple[RelayState, ...], *, as_json: bool) -> None:
    if as_json:
        print_json([each.pack() for each in relays])
    elif relays:
        urls = [each.address.partition("#")[0] or "its own" for each in relays]
        rows = [(url, each.source, each.said) for url, each in zip(urls, relays, strict=True)]
        print(table(("RELAY", "FROM", "STATE"), rows))
    else:
        print("this host is at no relay: it cannot be reached from other machines")
