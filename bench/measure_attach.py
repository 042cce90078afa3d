"""First full screen on attach, after 1 GB of output and after 1 MB.

Both sessions printed the same last megabyte a moment before, with nobody attached, so they differ
in their past only. Two ways: a program that connects and asks (from connect() until the Resync is
there), and the whole `hold attach` process (from its start until the last line of the screen is on
its terminal). A session is told to print through a FIFO, so nothing waits at its terminal."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from bench.results import Row, Target
from bench.sampling import Samples, interleaved, medians
from bench.stage import Stage
from bench.systems import System
from bench.terminal import COLS, ROWS, Terminal
from holdfast.model.size import Size
from holdfast.wire.messages import session as m

_PRINTER = r"""
echo $$ > "$1"
while read -r blocks <> "$3"; do
    n=0
    while [ $n -lt $blocks ]; do cat "$2"; n=$((n+1)); done
    printf '\nlast-line'
    echo done > "$4"
done
"""
_LAST_LINE = b"last-line"
_PRINT_TIMEOUT_S = 120.0
_DRAIN_S = 0.1  # the last page from the PTY into the ring
_PAINT_TIMEOUT_S = 20.0


class _Printer:
    """A session that prints so many blocks when told to."""

    def __init__(self, stage: Stage, system: System, name: str) -> None:
        self.system, self.name = system, name
        self._fifos = []
        for kind in ("ask", "done"):
            path = stage.path(f"{system.name}-{name}-{kind}")
            os.mkfifo(path)
            self._fifos.append(path)
        self._ask, self._done = (os.open(path, os.O_RDWR) for path in self._fifos)
        argv = ["/bin/sh", "-c", _PRINTER, "bench", system.pid_file(name), stage.block_file()]
        system.start(name, [*argv, *self._fifos])

    def print(self, blocks: int) -> float:
        began = time.perf_counter()
        os.write(self._ask, f"{blocks}\n".encode())
        if not select.select([self._done], [], [], _PRINT_TIMEOUT_S)[0]:
            raise TimeoutError(f"{self.name} did not print {blocks} MB")
        os.read(self._done, 64)
        seconds = time.perf_counter() - began
        time.sleep(_DRAIN_S)
        return seconds

    def close(self) -> None:
        os.close(self._ask)
        os.close(self._done)


def measure(stage: Stage) -> list[Row]:
    scale = stage.scale
    long = _Printer(stage, stage.holdfast, "long")
    seconds = long.print(scale.long_output_blocks)
    speed = scale.long_output_blocks / seconds
    tmux = _Printer(stage, stage.tmux, "short") if stage.systems(("tmux",)) else None
    made = iter(range(1000))

    def after_much(attach: Callable[[_Printer], float]) -> float:
        long.print(1)
        return attach(long)

    def after_little(attach: Callable[[_Printer], float]) -> float:
        """A new session each time: it must not have printed more than one block."""
        short = _Printer(stage, stage.holdfast, f"short{next(made)}")
        try:
            short.print(1)
            return attach(short)
        finally:
            stage.holdfast.end(short.name)
            short.close()

    asked = interleaved(
        {
            "holdfast": lambda: after_much(_until_resync),
            "after 1 MB": lambda: after_little(_until_resync),
        },
        scale.attach_repetitions,
    )
    painters = {
        "holdfast": lambda: after_much(_until_painted),
        "after 1 MB": lambda: after_little(_until_painted),
    }
    if tmux is not None:
        painters["tmux"] = lambda: (tmux.print(1), _until_painted(tmux))[1]
    painted = interleaved(painters, scale.attach_repetitions)
    amount = f"{scale.long_output_blocks / 1000:g} GB"
    long.close()
    if tmux is not None:
        tmux.close()
    return [
        _row(
            f"screen on attach after {amount}, SDK", asked, f"{amount} printed at {speed:.0f} MB/s"
        ),
        _row(f"screen on attach after {amount}, `hold attach`", painted, "tmux: after a few MB"),
    ]


def _row(name: str, samples: Samples, note: str) -> Row:
    values = medians(samples)
    return Row(
        name,
        "ms",
        {system: value for system, value in values.items() if system != "after 1 MB"},
        "after 1 MB",
        baseline=values["after 1 MB"],
        target=Target("<=", 1.2),
        note=note,
        samples=samples,
    )


def _until_resync(printer: _Printer) -> float:
    from bench.systems import Holdfast

    assert isinstance(printer.system, Holdfast)
    began = time.perf_counter()
    with printer.system.host() as host:
        connection = host.connection
        request = m.Attach(connection.next_id(), printer.name, 1, size=Size(COLS, ROWS))
        connection.send(request)
        while True:
            message = connection.receive(_PAINT_TIMEOUT_S)
            if isinstance(message, m.Resync):
                break
        seconds = time.perf_counter() - began
        assert _LAST_LINE in message.data
    return seconds * 1000


def _until_painted(printer: _Printer) -> float:
    began = time.perf_counter()
    with Terminal(printer.system.attach_command(printer.name), printer.system.env) as terminal:
        terminal.wait_for(_LAST_LINE, _PAINT_TIMEOUT_S)
        return (time.perf_counter() - began) * 1000
