"""Counters, in the format of Prometheus. No client library: the format is two lines per number, and
a relay has no histograms. No label names a host, session or address."""

from __future__ import annotations

_COUNTERS = {
    "connections_total": "WebSockets that were accepted",
    "refused_total": "connections refused: full, draining, too many, too often",
    "failed_proofs_total": "hosts that did not prove their key",
    "violations_total": "connections ended because of what they sent",
    "timeouts_total": "connections ended because they did not greet in time",
    "streams_total": "streams opened",
    "unknown_streams_total": "messages for a stream that the sender does not have",
    "overruns_total": "streams closed because more came than there was credit or room for",
    "data_frames_total": "messages passed through streams",
    "data_bytes_total": "the same in bytes",
    "broadcast_frames_total": "broadcasts received from hosts",
    "broadcast_bytes_total": "the same in bytes",
    "delivered_frames_total": "broadcasts handed to subscribers",
    "left_out_frames_total": "broadcasts not handed to a subscriber that was too slow",
    "gaps_total": "gaps told to subscribers",
    "fenced_total": "announcements refused because a later incarnation is known",
    "crossings_total": "streams opened to a host at another relay",
    "links_lost_total": "links to another relay that broke, with all that was on them",
}
_GAUGES = {
    "hosts": "connected hosts",
    "operators": "connected operators",
    "sessions": "sessions routed here",
    "streams": "open streams",
    "subscriptions": "subscriptions",
    "held_bytes": "waiting for connections that do not read fast enough",
    "sockets": "open connections, known or not",
    "draining": "1 when about to end",
    "relays": "other relays of the cluster that are there",
    "links": "links to and from them",
}


class Metrics:
    """Counters; the gauges are told when asked."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(_COUNTERS, 0)

    def count(self, name: str, more: int = 1) -> None:
        self.counts[name] += more

    def text(self, gauges: dict[str, int]) -> str:
        lines = []
        for names, kind, values in (
            (_COUNTERS, "counter", self.counts),
            (_GAUGES, "gauge", gauges),
        ):
            for name, meaning in names.items():
                full = f"holdfast_relay_{name}"
                lines += [f"# HELP {full} {meaning}", f"# TYPE {full} {kind}"]
                lines.append(f"{full} {values[name]}")
        return "\n".join(lines) + "\n"
