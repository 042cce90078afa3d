"""`hold relay`: a meeting point for hosts and operators. It is a process of its own; this only
checks the words and becomes it."""

from __future__ import annotations

import os
import sys

from holdfast.cli.arguments import Options, Parser, verb_parser

SUMMARY = "run a relay, through which operators reach hosts they cannot reach directly"


def parser() -> Parser:
    parser = verb_parser(
        "relay",
        "Run a relay until it is stopped. Hosts and operators dial it; it passes on what they "
        "say to each other, which it cannot read. It keeps nothing but epochs, if asked to, and "
        "another one can take its place at any time. SIGTERM or ^C sends everybody to another one "
        "first; a second one does not wait.",
        "  hold relay                                        on this machine only\n"
        "  hold relay --listen 0.0.0.0:7420 --self-signed    for a LAN; prints a fingerprint\n"
        "  hold relay --listen 0.0.0.0:443 --cert fullchain.pem --key privkey.pem \\\n"
        "             --name relay.example.org:443\n"
        "  hold relay --nats nats://n1:4222 --nats nats://n2:4222 ...    one of several",
    )
    parser.add_argument("--listen", metavar="ADDRESS:PORT", help="default 127.0.0.1:7420")
    parser.add_argument("--cert", metavar="FILE", help="TLS: the certificate with its chain, PEM")
    parser.add_argument("--key", metavar="FILE", help="TLS: its key, PEM. SIGHUP reads both again")
    parser.add_flag("--self-signed", help="TLS with a certificate of its own, and kept")
    parser.add_flag("--plain", help="no TLS on a public address: a proxy before it has it")
    parser.add_argument(
        "--name",
        metavar="HOST:PORT",
        action="append",
        help="how hosts dial it; a proof made for any other relay is refused (may be repeated)",
    )
    parser.add_flag("--public-metrics", help="/metrics for everybody, not just this machine")
    parser.add_argument(
        "--view-port",
        metavar="PORT",
        help="where the web app may show pages of sessions' ports, as another origin; 0: any",
    )
    parser.add_argument(
        "--registry",
        metavar="FILE",
        help="keep the highest epochs in this SQLite file, over a restart; for a relay alone",
    )
    parser.add_argument(
        "--nats",
        metavar="URL",
        action="append",
        help="be one of several relays, over this NATS server (repeat for others of its cluster)",
    )
    parser.add_argument(
        "--nats-replicas",
        metavar="N",
        help="how many NATS servers keep the epochs: default 3; 1 for a single server",
    )
    parser.add_argument(
        "--cluster",
        metavar="NAME",
        help="which relays on that NATS are one with this: those of the same name, "
        "default holdfast",
    )
    parser.add_argument(
        "--limit",
        metavar="NAME=VALUE",
        action="append",
        help="another value for one of the limits in docs/relay.md (may be repeated)",
    )
    return parser


def run(options: Options) -> int:
    words: list[str] = []
    for name in ("listen", "cert", "key", "view_port", "registry", "nats_replicas", "cluster"):
        if (value := getattr(options, name)) is not None:
            words += [f"--{name.replace('_', '-')}", value]
    for name in ("self_signed", "plain", "public_metrics"):
        if getattr(options, name):
            words.append(f"--{name.replace('_', '-')}")
    for name in ("name", "nats", "limit"):
        for value in getattr(options, name) or ():
            words += [f"--{name}", value]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "holdfast.relay", *words])
