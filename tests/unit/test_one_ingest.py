"""`LiveSession.handle` is the only way in: whatever an actor does to a session is judged by the
session machine before it is recorded, taken into custody, typed, or changes the tree or the
terminal. Read from the source of the host: only the executor asks the machine, and only what the
executor calls records and types input, sends signals, halts, resumes and resizes.

By name, so that it needs no running host; the last test shows what it finds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

HOST = Path(__file__).resolve().parents[2] / "src" / "holdfast" / "host"

# What is called (on which object, "" for any), and the files that may.
ONLY_FROM: dict[tuple[str, str], set[str]] = {
    ("core", "handle"): {"session/executor.py"},
    ("executor", "handle"): {"session/live_session.py"},
    ("", "take_inputs"): {"session/executor.py"},
    ("ledger", "take"): {"session/input_custody.py"},
    ("", "type_into"): {"session/input_custody.py"},
    ("", "stage_key"): {"session/input_custody.py"},
    ("", "commit_key"): {"session/input_custody.py"},
    ("inputs", "taken"): {"session/input_custody.py"},
    # Only core.session puts an input into the queue.
    ("inputs", "offer"): set(),
    # What is in custody already is typed when a session begins, is carried on, or is unfenced.
    ("", "flush_to_pty"): {"session/input_custody.py", "session/live_session.py"},
    # What happens to the tree and the terminal is an effect, whoever asks: a person, the gate, an
    # action, the reaper.
    ("", "signal_foreground"): {"session/live_session.py"},
    ("pty", "set_size"): {"session/live_session.py"},
    ("output", "set_blind"): {"session/live_session.py"},
    ("halts", "freeze"): {"session/live_session.py"},
    ("halts", "thaw"): {"session/live_session.py"},
    ("freeze", "halt"): {"session/halt_control.py"},
    ("freeze", "resume"): {"session/halt_control.py"},
    ("freeze", "kill"): {"session/live_session.py"},
    # The ledger alone writes to a PTY; to the host's own files anybody may.
    ("os", "write"): {"session/fencing_token.py"},
    ("os", "writev"): set(),
}


def trespasses(source: str, file: str) -> Iterator[str]:
    """References, called or not, that this file may not have."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        on = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        for of in ("", on.lstrip("_")):
            if file not in ONLY_FROM.get((of, node.attr), {file}):
                yield f"{file}:{node.lineno} {on}.{node.attr}"


@pytest.mark.requirement("A1")
def test_nothing_is_judged_recorded_or_typed_past_the_executor() -> None:
    files = sorted(HOST.rglob("*.py"))
    assert len(files) > 50
    found = [
        each
        for path in files
        for each in trespasses(path.read_text(), path.relative_to(HOST).as_posix())
    ]
    assert found == []


def test_every_file_named_here_does_what_it_may() -> None:
    for (on, name), files in ONLY_FROM.items():
        for file in files:
            assert re.search(rf"\b{name}\b", (HOST / file).read_text()), (on, name, file)


@pytest.mark.parametrize(
    "shortcut",
    [
        "live.core.handle(event)",
        "core = live.core\ncore.handle(event)",
        "live.executor.handle(event)",
        "live.custody.ledger.take(operator, seq, data)",
        "ledger.type_into(live.fds.master)",
        "type_now = self._ledger.type_into",
        "live.journal.stage_key(actor, operator, seq, data, False, 0)",
        "live.core.inputs.offer(key)",
        "os.write(live.fds.master, data)",
        "signals.signal_foreground(live.fds.master, number)",
        "live.halts.freeze(actor, None)",
        "asyncio.to_thread(freeze.kill, live.spec.place)",
    ],
)
def test_a_shortcut_would_be_found(shortcut: str) -> None:
    assert list(trespasses(shortcut, "session/input_requests.py"))
