"""Makes docs/prediction-vectors.json: lines typed far away, step by step, with what is to be drawn.

    PYTHONPATH=src:tests python -m unit.prediction_vectors > docs/prediction-vectors.json

Each step names a call of the machine with its arguments and what holds after it: the overlay, when
it wants to be woken, whether it wants to see the line. The machine in Python and the one in
TypeScript are both held to it; a test compares the file with what is made here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from holdfast.sdk.prediction.machine import (
    BACK,
    GRACE_S,
    LEFT,
    RIGHT,
    Overlay,
    PredictedLine,
    Prediction,
)
from unit.predicted import COLS, line

SEED = 20_261_116
_RANDOM_CASES, _RANDOM_STEPS = 12, 30


class Written:
    """A machine that writes down what is done to it and what comes of it."""

    def __init__(self, name: str, shown: str = "$ ") -> None:
        self.case: dict[str, Any] = {"name": name, "steps": []}
        self._guess = Prediction()
        self._line = line(shown)
        self._seq, self._offset = 0, 100

    def _do(self, call: str, **arguments: Any) -> Written:
        given = dict(arguments)
        if isinstance(arguments.get("line"), PredictedLine):
            shown = arguments["line"]
            given["line"] = {name: getattr(shown, name) for name in ("row", "col", "text", "plain")}
        if call == "typed":
            arguments["data"] = arguments["data"].encode()
        getattr(self._guess, call)(**arguments)
        self.case["steps"].append({"do": call, **given, **after(self._guess)})
        return self

    def type(self, text: str) -> Written:
        self._seq += 1
        return self._do("typed", seq=self._seq, data=text, line=self._line)

    def print(self, shown: PredictedLine | str) -> Written:
        self._offset += 1
        self._line = line(shown) if isinstance(shown, str) else shown
        return self._do("printed", offset=self._offset, line=self._line)

    def accept(self, now: float) -> Written:
        return self._do("accepted", seq=self._seq, offset=self._offset, now=now)

    def tick(self, now: float) -> Written:
        return self._do("tick", now=now)

    def withhold(self, yes: bool) -> Written:
        return self._do("withhold", yes=yes)

    def reset(self) -> Written:
        return self._do("reset")


def after(guess: Prediction) -> dict[str, Any]:
    overlay = guess.overlay()
    return {
        "overlay": None if overlay is None else packed(overlay),
        "wake_at": guess.wake_at(),
        "looks": guess.looks,
    }


def packed(overlay: Overlay) -> dict[str, Any]:
    cells = [[cell.col, cell.char] for cell in overlay.cells]
    return {"row": overlay.row, "col": overlay.col, "cells": cells, "cursor": overlay.cursor}


def _echoed(case: Written) -> Written:
    """Trust, by a first letter that came back."""
    return case.type("l").accept(1.0).print("$ l")


SCENES: dict[str, Callable[[Written], object]] = {
    "a word, echoed letter by letter": lambda case: (
        _echoed(case).type("s").type(" ").type("-").print("$ ls").print("$ ls -").accept(1.3)
    ),
    "letters, backspace and arrows": lambda case: (
        _echoed(case)
        .type("sx").type(BACK).type(LEFT).type("a").type(RIGHT).type("\b").type("\x1bOD")
        .print("$ lsx").print("$ ls").print(line("$ ls", 3)).print(line("$ las", 4))
    ),
    "backspace into the prompt": lambda case: _echoed(case).type(BACK).type(BACK).type("x"),
    "a password after Enter": lambda case: (
        _echoed(case).type("s\r").type("hunter2").accept(1.1).print("$ ls")
        .print(line("Password: ", row=1)).type("more").accept(1.2).tick(1.2 + GRACE_S)
    ),
    "a prompt that begins like what was typed ahead": lambda case: (
        _echoed(case).type("\r").accept(1.1).type("h").type("unter2")
        .print(line("", row=1)).print(line("h", row=1))
    ),
    "trust again at the next prompt": lambda case: (
        _echoed(case).type("\r").accept(1.1).print(line("$ ", row=1))
        .type("p").type("w").print(line("$ p", row=1))
    ),
    "stars": lambda case: (
        case.type("*").print("Password: *").type("a").print("Password: **").type("b")
    ),
    "a letter that does not come back": lambda case: (
        _echoed(case).type("s").accept(2.0).tick(2.0).tick(2.0 + GRACE_S).type("e")
    ),
    "keys that undo one another": lambda case: (
        _echoed(case).type("s").type(BACK).accept(2.0).tick(2.0 + GRACE_S).type("s")
    ),
    "output that was not foreseen": lambda case: (
        _echoed(case).type("s").print(line("new mail", row=3)).type("h")
    ),
    "an offered ending, and a clock behind a gap": lambda case: (
        case.type("l").print(line("$ ls -la", 3)).type("s").print(line("$ ls -la", 4)).type(" ")
        .reset().print(line("$ l      12:00", 3)).type("e").print(line("$ le     12:00", 4))
        .type("ft").type(BACK)
    ),
    "the end of the row": lambda case: (
        _echoed(case).print("$ " + "x" * (COLS - 4)).type("y")
        .print("$ " + "x" * (COLS - 4) + "y").type("z").type("z")
    ),
    "narrow, wide and joined": lambda case: (
        _echoed(case).type("äжΩ").type("漢").type("x").reset().type("e\u0301")
    ),
    "a line that is not plain": lambda case: (
        _echoed(case).type("s").print(line("$ l", plain=False)).type("q").print("$ l").type("s")
    ),
    "a secret is asked for": lambda case: (
        _echoed(case).type("s").withhold(True).type("h").print("$ lh").withhold(False)
        .type("a").print("$ lha").type("b")
    ),
    "a paste, a key of its own, and half a sequence": lambda case: (
        _echoed(case).type("x" * 65).type("a").reset().type("\x1b[A").type("b").reset()
        .type("a\x1b[200~b")
    ),
}  # fmt: skip


def _anything(case: Written, chance: random.Random) -> None:
    """Whatever may happen, in any order; most of what is typed comes back."""
    now = 0.0
    for _ in range(_RANDOM_STEPS):
        now += chance.choice([0.0, 0.1, 0.3])
        states = case._guess._states
        kind = chance.choice(["type"] * 6 + ["echo"] * 4 * bool(states) + ["accept", "tick"])
        if chance.random() < 0.05:
            case.print(line(chance.choice(["$ ", "$ ab", "new"]), row=chance.choice([0, 1])))
        elif kind == "type":
            case.type(chance.choice([*"abcdefgabcdefg", BACK, LEFT, RIGHT, BACK, LEFT, "\r", "*"]))
        elif kind == "echo":
            col, text = chance.choice(states[:2])
            case.print(PredictedLine(case._line.row, col, text))
        elif kind == "accept":
            case.accept(now)
        else:
            case.tick(now)


def made() -> dict[str, Any]:
    cases = []
    for name, scene in SCENES.items():
        case = Written(name)
        scene(case)
        cases.append(case.case)
    for number in range(_RANDOM_CASES):
        case = Written(f"anything, {number}")
        _anything(case, random.Random(SEED + number))
        cases.append(case.case)
    return {"grace_s": GRACE_S, "cols": COLS, "cases": cases}


def text() -> str:
    """One step to a line: a difference can be read."""
    whole = made()
    parts = []
    for case in whole["cases"]:
        steps = ",\n".join("   " + json.dumps(step, ensure_ascii=True) for step in case["steps"])
        parts.append(f'  {{"name": {json.dumps(case["name"])}, "steps": [\n{steps}]}}')
    head = f'{{"grace_s": {whole["grace_s"]}, "cols": {whole["cols"]}, "cases": [\n'
    return head + ",\n".join(parts) + "\n]}\n"


if __name__ == "__main__":
    print(text(), end="")
