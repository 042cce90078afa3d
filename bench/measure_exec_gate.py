"""The exec gate: loads of small programs in a contained session, without the filter, and with it in
the three ways it can be: no policy in force, a policy that is about lines only, and one that judges
every program while two actors have a part in the session.

All in turn, in sessions of one host. `true` starts programs and does nothing else; *make* compiles;
*configure* is a loop of small programs and files, as such scripts are."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial

from bench.results import Row, Target
from bench.sampling import interleaved, medians
from bench.stage import Stage
from holdfast.adapters.halt import cgroup
from holdfast.adapters.seccomp import filter as seccomp
from holdfast.sdk.blocking import Hold, connect
from holdfast.sdk.client import Host
from holdfast.wire.messages import gate_policy

_TRUE = "for i in $(seq 1000); do /bin/true; done"
_MAKE = "make -s clean && make -s all"
_CONFIGURE = (
    "for i in $(seq 40); do echo 'int main(){return 0;}' > c.c; cc -E c.c > c.i 2> c.err; "
    "grep -q main c.i && sed -e s/a/b/ c.i > c.o2; rm -f c.i c.err; x=$(uname -s; expr $i + 1); "
    "cat c.c | tr a b > /dev/null; done"
)
_MAKEFILE = (
    "N := $(shell seq 40)\nall: $(addsuffix .o,$(addprefix f,$(N)))\n"
    "f%.o:\n\t@echo 'int f$*(void){return $*;}' > f$*.c; gcc -c f$*.c -o $@\n"
    "clean:\n\t@rm -f *.o *.c\n"
)
_LINES = """
default = "allow"
[[rule]]
what = "line"
lines = "never-typed*"
then = "refuse"
"""
_PROGRAMS = """
default = "allow"
[[rule]]
what = ["exec", "write-open"]
commands = ["never-run"]
then = "refuse"
"""
_WITHOUT, _PASSED, _ONE, _JUDGED = "no filter", "no policy", "a policy about lines", "holdfast"
_LOADS = {"1000 x /bin/true": _TRUE, "make": _MAKE, "configure": _CONFIGURE}
# While one actor works, and while everything of two is judged.
_BOUNDS = {
    "1000 x /bin/true": (1.5, 1.5),
    "make": (1.10, 1.25),
    "configure": (1.20, 1.35),
}


def measure(stage: Stage) -> list[Row]:
    if os.geteuid() != 0 or cgroup.unavailable() or seccomp.unavailable():
        return []
    rows = []
    with _sessions(stage) as run:
        for name, load in _LOADS.items():
            actions = {
                each: partial(run, each, load) for each in (_WITHOUT, _PASSED, _ONE, _JUDGED)
            }
            samples = interleaved(actions, stage.scale.start_repetitions, warm_up=1)
            found = medians(samples)
            for what, way, bound in (
                ("no policy", _PASSED, _BOUNDS[name][0]),
                ("one actor", _ONE, _BOUNDS[name][0]),
                ("all judged", _JUDGED, _BOUNDS[name][1]),
            ):
                rows.append(
                    Row(
                        f"exec gate, {name}, {what}",
                        "ms",
                        {"holdfast": found[way]},
                        _WITHOUT,
                        baseline=found[_WITHOUT],
                        target=Target("<=", bound),
                        samples={"holdfast": samples[way], _WITHOUT: samples[_WITHOUT]},
                    )
                )
    return rows


@contextlib.contextmanager
def _sessions(stage: Stage) -> Iterator[Callable[[str, str], float]]:
    (system,) = stage.systems(("holdfast",))
    path = f"{system.env['HOLDFAST_HOME']}/run/hold.sock"
    with tempfile.TemporaryDirectory() as work, Host(path) as host, connect(path) as hold:
        ids: dict[str, str] = {}
        try:
            for way in (_WITHOUT, _PASSED, _ONE, _JUDGED):
                cwd = f"{work}/{len(ids)}"
                os.mkdir(cwd)
                with open(f"{cwd}/Makefile", "w", encoding="ascii") as file:
                    file.write(_MAKEFILE)
                info = host.run(
                    ["bash", "--norc"],
                    cwd=cwd,
                    env={"PATH": os.environ["PATH"]},
                    gate=way != _WITHOUT,
                )
                ids[way] = info.id
            for way, text in ((_ONE, _LINES), (_JUDGED, _PROGRAMS)):
                request = gate_policy.SetPolicy(0, text, "bench", "toml", ids[way])
                host.ask(request, gate_policy.Policies)
            yield partial(_run, hold, ids)
        finally:
            for id in ids.values():
                host.end(id)


def _run(hold: Hold, ids: dict[str, str], way: str, load: str) -> float:
    session = hold.session(ids[way])
    began = time.perf_counter()
    assert session.start(load).result().status == 0
    return (time.perf_counter() - began) * 1000
