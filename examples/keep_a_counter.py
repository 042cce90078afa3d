"""A program that gives its session its own state: it goes on counting after a restore, at any
level and on any machine.

    hold run -d --name counter -- python3 examples/keep_a_counter.py --serve
    hold checkpoint counter --end
    hold restore counter

Run without --serve it does these three steps itself.
"""

from __future__ import annotations

import subprocess
import sys
import time
import uuid
from pathlib import Path

from holdfast import blocking, snapshots


def serve() -> None:
    count = 0

    def load(saved: bytes) -> None:
        nonlocal count
        count = int(saved)
        print(f"goes on at {count}", flush=True)

    snapshots.register(save=lambda: b"%d" % count, load=load)
    while True:
        count += 1
        print(f"count {count}", flush=True)
        time.sleep(0.05)


def main() -> None:
    name = f"counter-{uuid.uuid4().hex[:6]}"
    with blocking.connect() as host:
        session = host.run([sys.executable, __file__, "--serve"], name=name, level="plain")
        session.wait_for(text="count 5$", timeout=20)
        hold = str(Path(sys.executable).with_name("hold"))
        for words in (("checkpoint", name, "--end"), ("restore", name)):
            subprocess.run([hold, *words], check=True, stdout=subprocess.DEVNULL)
        print(session.wait_for(text=r"goes on at \d+", timeout=20))
        session.end()


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
