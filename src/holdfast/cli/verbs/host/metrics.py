"""`hold metrics`: numbers of this host, for Prometheus."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, verb_parser
from holdfast.sdk.client import Host
from holdfast.wire.messages import session as m

SUMMARY = "print numbers of this host for Prometheus"


def parser() -> Parser:
    return verb_parser(
        "metrics",
        "Print in the text form of Prometheus: sessions by state, idle ones, their memory, "
        "processes, descriptors and disk, inputs, refusals, connections, restarts. No line names a "
        "session or an actor. A timer that writes this for node_exporter's textfile collector, or "
        "any exporter that runs a command, makes it a target.",
        "  hold metrics\n  hold metrics > /var/lib/node_exporter/holdfast.prom",
    )


def run(options: Options) -> None:
    with Host(client="hold metrics") as host:
        print(host.ask(m.GetMetrics(0), m.MetricsShown).text, end="")
