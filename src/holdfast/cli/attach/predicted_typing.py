"""Typing to a host far away: keys are drawn before their echo arrives (`sdk.prediction.machine`).

All that goes to the operator's terminal goes through here, and while guesses may be drawn also into
an emulator beside it, which knows what is under them. Each piece of output is written with the
guesses taken away before it and those still open drawn again after it, in one write; so what the
session prints always finds the terminal as the session left it. Guesses are underlined.

On only while the round trip is long (`sdk.prediction.round_trip`): before that, and on
machines nearby, there is no emulator, and keys take the short way of `native_loop`. The cursor is
moved by steps, not to places, so a terminal that takes some character for wider than the emulator
does is not confused. One thing a program could notice: "repeat the last character" (REP) sent
by itself, just after a guess was drawn, would repeat that one.
"""

from __future__ import annotations

import os
import time

from holdfast.cli.attach.raw_terminal import write_all
from holdfast.model.errors import InvalidArgument
from holdfast.model.state import SessionState
from holdfast.sdk.prediction.round_trip import RoundTrip
from holdfast.wire.messages import session as m
from holdfast.wire.messages import turn as turn_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.adapters.ghostty.cursor_line import LineScreen
    from holdfast.model.size import Size
    from holdfast.sdk.prediction.machine import Overlay, PredictedLine, Prediction

CHOSEN_BY = "HOLDFAST_PREDICT"
AUTO, ALWAYS, NEVER = "auto", "always", "never"
CHOICES = (AUTO, ALWAYS, NEVER)
ASK_AGAIN_S = 5.0  # how often the round trip is measured while keys are typed, where it was short


def chosen(option: str | None) -> str:
    """As the command line says, else the environment, else by the length of the round trip."""
    word = option or os.environ.get(CHOSEN_BY) or AUTO
    if word not in CHOICES:
        raise InvalidArgument(f"{CHOSEN_BY} is {' or '.join(CHOICES)}, not {word!r}")
    return word


class PredictedTyping:
    """Between a client and the operator's terminal."""

    def __init__(
        self,
        choice: str,
        ask: Callable[[Callable[..., m.Request], dict[str, object]], int],
        write: Callable[[int, bytes], None] = write_all,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`ask` sends a request about the session without waiting, and gives its id."""
        self._choice, self._ask, self._write, self._clock = choice, ask, write, clock
        self._way = RoundTrip()
        self._far = False  # the host is on another machine
        self._asked: dict[int, float] = {}  # requests whose answer tells the round trip
        self._sent: tuple[int, float] | None = None  # an input whose answer does
        self._last = 0  # input when the round trip was last measured
        self._screen: LineScreen | None = None
        self._guess: Prediction | None = None
        self._told = False  # the host tells when a secret is asked for
        self._secret = self._blind = False
        self._undo = b""  # what takes away the guesses that are drawn

    # -- whether --------------------------------------------------------------------------------

    @property
    def on(self) -> bool:
        """Whether keys and output have to come through here one by one."""
        if self._choice != AUTO:
            return self._choice == ALWAYS
        return self._far and (self._way.slow or (self._way.doubtful and self._screen is not None))

    @property
    def lacks_screen(self) -> bool:
        """Whether it is on and does not know what the terminal shows: a `paint` is wanted."""
        return self.on and self._screen is None

    @property
    def measures(self) -> bool:
        """Whether the round trip should be measured from time to time."""
        return self._far and self._choice == AUTO

    def connected(self, far: bool, seconds: float) -> None:
        """There is a connection, and it took so long to be attached."""
        self._far = far
        self._asked.clear()
        self._sent = None
        self._way.forget()
        self._told = False
        if self._guess is not None:
            self._guess.reset()
            self._draw()
            self._watch()
        if self.measures:
            self._took(seconds)

    def measure(self, last: int) -> None:
        """It is time to; nothing is asked of a host that nobody types to. `last`: the input."""
        if self.measures and not self.on and last != self._last:
            self._last = last
            self._question()

    def _question(self) -> None:
        """A request that is cheap to answer, and tells whether the turn is blind too."""
        now = self._clock()
        self._asked[self._ask(turn_messages.GetTurn, {})] = now

    def _took(self, seconds: float) -> None:
        self._way.took(seconds)
        if not self.measures:
            return
        if self._way.doubtful and not self._asked:
            self._question()
        if not self.on:
            self.close()

    # -- from the host --------------------------------------------------------------------------

    def paint(self, data: bytes, size: Size | None) -> None:
        """Paint the whole screen again, from this."""
        if size is not None and (self.on or (self.measures and self._way.doubtful)):
            self._begin(size)
        self.show(data)

    def show(self, data: bytes, offset: int | None = None) -> None:
        """Write it to the terminal: output up to `offset`, or something of our own."""
        screen, guess = self._screen, self._guess
        if screen is None or guess is None:
            self._write(1, data)
            return
        undo, self._undo = self._undo, b""
        screen.feed(data)
        if offset is None:
            guess.reset()
        elif guess.looks:
            guess.printed(offset, self._line(screen))
        self._write(1, undo + data + self._drawn())

    def on_message(self, message: m.Message) -> None:
        """Anything the host says but output."""
        if isinstance(message, m.Accepted):
            self._accepted(message)
            return
        if isinstance(message, m.Failed):
            self._asked.pop(message.id, None)
            if self._guess is not None:
                self._guess.reset()
        elif isinstance(message, turn_messages.TurnShown):
            self._blind = message.turn.blind
            if message.id in self._asked:
                self._took(self._clock() - self._asked.pop(message.id))
        elif isinstance(message, turn_messages.TurnMessage):
            self._blind = message.turn.blind
        elif isinstance(message, m.StateEvent):
            self._secret = message.state is SessionState.SECRET
        else:
            return
        if self._guess is not None:
            self._guess.withhold(self._secret or self._blind)
            self._draw()

    def _accepted(self, message: m.Accepted) -> None:
        now = self._clock()
        if self._guess is None:
            return
        self._guess.accepted(message.seq, message.offset, now)
        if self._sent is not None and message.seq >= self._sent[0]:
            sent, self._sent = self._sent[1], None
            self._took(now - sent)
        self._draw()

    # -- from the operator ----------------------------------------------------------------------

    def typed(self, seq: int, data: bytes) -> None:
        """These keys are on their way as this input."""
        if self._sent is None:
            self._sent = (seq, self._clock())
        if self._guess is not None and self._screen is not None:
            self._guess.typed(seq, data, self._line(self._screen))
            self._draw()

    def resized(self, size: Size) -> None:
        if self._screen is not None and self._guess is not None:
            self._guess.reset()
            self._undo = b""  # the terminal has moved its lines about
            self._screen.resize(size)

    # -- time -----------------------------------------------------------------------------------

    def timeout_ms(self, other: float | None) -> float | None:
        """How long may be waited, where somebody else wants `other` at most; None is forever."""
        wake = self._guess.wake_at() if self._guess is not None else None
        if wake is None:
            return other
        mine = max(0.0, wake - self._clock()) * 1000
        return mine if other is None else min(mine, other)

    def tick(self) -> None:
        if self._guess is not None and self._guess.wake_at() is not None:
            self._guess.tick(self._clock())
            self._draw()

    def close(self) -> None:
        """Take away what is drawn; from now on everything goes through as it is."""
        undo, self._undo = self._undo, b""
        if undo:
            self._write(1, undo)
        if self._screen is not None:
            self._screen.close()
        self._screen = self._guess = None

    # -- drawing --------------------------------------------------------------------------------

    def _begin(self, size: Size) -> None:
        """An emulator for what is painted next. Imported only here: nobody nearby pays for it."""
        self.close()
        try:
            from holdfast.adapters.ghostty.cursor_line import LineScreen
        except (ImportError, OSError):  # a machine the library is not made for: no guesses
            self._choice = NEVER
            return
        from holdfast.sdk.prediction.machine import Prediction

        self._screen, self._guess = LineScreen(size), Prediction()
        self._guess.withhold(self._secret or self._blind)
        self._watch()

    def _watch(self) -> None:
        """Watch for when a secret is asked for, and whether the turn is blind."""
        if not self._told:
            self._told = True
            self._ask(m.Watch, {})
            self._question()

    def _draw(self) -> None:
        """What is drawn becomes what should be."""
        undo, self._undo = self._undo, b""
        drawn = self._drawn()
        if undo or drawn:
            self._write(1, undo + drawn)

    def _drawn(self) -> bytes:
        """The guesses as they are to be seen now; how to take them away again is noted."""
        if self._guess is None or self._screen is None:
            return b""
        overlay = self._guess.overlay()
        if overlay is None or not (self._way.slow or self._choice == ALWAYS):
            return b""
        drawn, self._undo = _over(self._screen, overlay)
        return drawn

    def _line(self, screen: LineScreen) -> PredictedLine:
        from holdfast.sdk.prediction.machine import NO_GUESS, PredictedLine, narrow

        col, row = screen.cursor()
        text = "".join(char if narrow(char) else NO_GUESS for char in screen.row(NO_GUESS))
        return PredictedLine(row, col, text, screen.plain())


def _over(screen: LineScreen, overlay: Overlay) -> tuple[bytes, bytes]:
    """What draws the guesses, and what undoes it: each leaves the pen as the session has it."""
    at, back = overlay.col, overlay.cursor
    draw, undo = [], []
    for start, text in _runs(overlay):
        end = start + len(text)
        draw += [_move(at, start), *(_painted(char) for char in text)]
        undo += [_move(back, start), screen.cells(start, end - 1)]
        at = back = end
    pen = screen.pen()
    draw += [_move(at, overlay.cursor), pen]
    undo += [_move(back, overlay.col), pen]
    return b"".join(draw), b"".join(undo)


def _runs(overlay: Overlay) -> list[tuple[int, str]]:
    """Neighbouring cells together: column and text."""
    runs: list[tuple[int, str]] = []
    for cell in overlay.cells:
        if runs and runs[-1][0] + len(runs[-1][1]) == cell.col:
            runs[-1] = (runs[-1][0], runs[-1][1] + cell.char)
        else:
            runs.append((cell.col, cell.char))
    return runs


def _painted(char: str) -> bytes:
    return b"\x1b[0m " if char == " " else b"\x1b[0;4m" + char.encode()


def _move(before: int, after: int) -> bytes:
    if before == after:
        return b""
    return b"\x1b[%d%c" % (abs(after - before), b"C" if after > before else b"D")
