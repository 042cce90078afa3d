"""One stalled observer beside a reading one.

A terminal attached by `hold attach` takes the coloured text alone, and again while an observer that
attached and never reads hangs on the same session."""

from __future__ import annotations

from bench.content import ask
from bench.results import Row, Target
from bench.sampling import interleaved, medians
from bench.stage import Stage
from holdfast.wire.messages import session as m

_NAME = "beside"
_TIMEOUT_S = 120.0


def measure(stage: Stage) -> list[Row]:
    megabytes = stage.scale.text_blocks
    with stage.attached(stage.holdfast, _NAME, stage.text_file()) as terminal:

        def alone() -> float:
            return megabytes / ask(terminal, "cat", _TIMEOUT_S)

        def beside_a_stalled_one() -> float:
            with stage.holdfast.host() as host:
                connection = host.connection
                attach = m.Attach(connection.next_id(), _NAME, 1, observe=True)
                connection.ask(attach)  # and from here on nothing is read
                return alone()

        samples = interleaved(
            {"holdfast": beside_a_stalled_one, "alone": alone}, stage.scale.stalled_repetitions
        )
    values = medians(samples)
    return [
        Row(
            "beside a stalled observer",
            "MB/s",
            {"holdfast": values["holdfast"]},
            "alone",
            baseline=values["alone"],
            target=Target(">=", 0.9),
            samples=samples,
        )
    ]
