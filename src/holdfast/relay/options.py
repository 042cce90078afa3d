"""The relay's command line, as used by `hold relay` and `hold up`."""

from __future__ import annotations

import argparse
import ipaddress
import os
import re

from holdfast.model.errors import InvalidArgument
from holdfast.model.record import Record
from holdfast.relay.limits import Bounds, bounds_of

DEFAULT_LISTEN = "127.0.0.1:7420"
CLUSTER = "holdfast"
_WORD = re.compile(r"[A-Za-z0-9_-]{1,32}")
NATS_REPLICAS = 3  # survives the loss of one server


class Options(Record):
    """How to run one relay."""

    address: str
    port: int
    certificate: str
    key: str
    self_signed: bool
    names: tuple[str, ...]  # host:port names by which hosts dial it; empty: not checked
    public_metrics: bool
    bounds: Bounds
    registry: str  # SQLite file; empty: the state is lost with the process
    nats: tuple[str, ...]  # URLs of servers of one cluster; empty: this relay is alone
    nats_replicas: int
    cluster: str  # relays with the same name form a cluster
    ready_fd: int | None  # gets the URL and fingerprint once it serves
    view_port: int | None = None  # for pages of sessions' ports; 0: any port; None: not shown
    metrics_token_hash: str = ""  # SHA-256 of the bearer token that /metrics asks for, in hex
    host_metrics: str = ""  # the socket at which the host whose own relay this is tells its numbers
    host_uid: int = -1  # the user of that host: the one that started the relay
    user: str = ""  # the user to switch to once everything is open, if possible

    @property
    def tls(self) -> bool:
        return self.self_signed or bool(self.certificate)


def parse(words: list[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m holdfast.relay", allow_abbrev=False)
    parser.add_argument("--listen", default=DEFAULT_LISTEN)
    parser.add_argument("--cert", default="")
    parser.add_argument("--key", default="")
    parser.add_argument("--self-signed", action="store_true")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--name", action="append", default=[])
    parser.add_argument("--public-metrics", action="store_true")
    parser.add_argument("--metrics-token-hash", default="")
    parser.add_argument("--host-metrics", default="")
    parser.add_argument("--limit", action="append", default=[])
    parser.add_argument("--registry", default="")
    parser.add_argument("--nats", action="append", default=[])
    parser.add_argument("--nats-replicas", type=int, default=NATS_REPLICAS)
    parser.add_argument("--cluster", default=CLUSTER)
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--user", default="")
    parser.add_argument("--view-port", type=int, metavar="PORT", choices=range(1 << 16))
    given = parser.parse_args(words)
    address, port = _place(given.listen)
    if bool(given.cert) != bool(given.key):
        raise InvalidArgument("--cert and --key must be given together")
    if given.cert and given.self_signed:
        raise InvalidArgument("give either --cert and --key, or --self-signed")
    if given.registry and given.nats:
        raise InvalidArgument("give either --registry, for a single relay, or --nats, for several")
    if not 1 <= given.nats_replicas <= 5:
        raise InvalidArgument("--nats-replicas must be 1 to 5")
    if not _WORD.fullmatch(given.cluster):
        raise InvalidArgument(
            f"not a cluster name: {given.cluster[:40]!r}",
            hint="letters, digits, '_' and '-', at most 32",
        )
    options = Options(
        address=address,
        port=port,
        certificate=given.cert,
        key=given.key,
        self_signed=given.self_signed,
        names=tuple(given.name),
        public_metrics=given.public_metrics,
        bounds=bounds_of(given.limit),
        registry=given.registry,
        nats=tuple(given.nats),
        nats_replicas=given.nats_replicas,
        cluster=given.cluster,
        ready_fd=given.ready_fd,
        metrics_token_hash=given.metrics_token_hash,
        host_metrics=given.host_metrics,
        host_uid=os.getuid(),
        user=given.user,
        view_port=given.view_port,
    )
    if not (options.tls or given.plain or _loopback(address)):
        raise InvalidArgument(
            f"without TLS the network to {address} can see who talks to whom",
            hint="--cert and --key, --self-signed for a LAN, or --plain behind a proxy with TLS",
        )
    return options


def _place(listen: str) -> tuple[str, int]:
    """ADDRESS:PORT, with an IPv6 address in brackets."""
    address, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise InvalidArgument(f"not an address and port: {listen[:80]!r}", hint="127.0.0.1:7420")
    address = address.removeprefix("[").removesuffix("]")
    try:
        return str(ipaddress.ip_address(address)), int(port)
    except ValueError:
        if address == "localhost":
            return "127.0.0.1", int(port)
        raise InvalidArgument(
            f"not an address: {address[:80]!r}", hint="0.0.0.0 or [::] for all of this machine"
        ) from None


def _loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback
