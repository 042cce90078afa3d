"""A line sent just before somebody else takes the session: it is judged like any other, and once
the turn is gone nothing of its sender commits."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from process import gate_checks as check
from process.commanding import Hold
from process.gate_stage import (
    AGENT,
    LINE,
    Scenario,
    Stage,
    Theatre,
    entered,
    log,
    made,
    opened,
    seen,
    settled,
    state,
)

NOTHING = Scenario("front-running", (), (), layer=LINE)
ROUNDS = 6  # of a race; each is won by the other side now and then


@pytest.fixture(scope="module")
def theatre() -> Iterator[Theatre]:
    with closing(Theatre(Hold())) as theatre:
        yield theatre


def entering(stage: Stage, text: str) -> tuple[threading.Thread, list[HoldfastError]]:
    """Rob's line, by a thread: with a policy in force the answer may wait for the judgement."""
    refused: list[HoldfastError] = []

    def send() -> None:
        try:
            stage.theatre.client(AGENT).session(stage.session).type(stage.fill(text), enter=True)
        except HoldfastError as refusal:
            refused.append(refusal)

    thread = threading.Thread(target=send)
    thread.start()
    return thread, refused


def seized(stage: Stage) -> int:
    """The unix user takes the turn; gives the journal's last entry by then."""
    session = stage.theatre.client("").session(stage.session)
    session.seize(reason="front-running")
    return check.last_entry(stage)


def mine(stage: Stage, line: str) -> None:
    """A line of the unix user's, to its end. What somebody had typed there is cleared first."""
    stage.theatre.client("").session(stage.session).keys("C-c")
    stage.theatre.client("").session(stage.session).submit(
        stage.fill(line), wait_prompt=20, timeout=20
    )


def of_rob(stage: Stage, since: int) -> list[dict[str, object]]:
    """Command lines of rob's that began after this entry."""
    ids = {name: key for key, name in check.actor_names(stage).items()}
    found = log(stage, "--since", str(since + 1), "--kind", "command_began")
    return [each for each in found if ids[AGENT] in (each["actor"], *each["body"]["authors"])]


def ahead(stage: Stage) -> tuple[threading.Thread, list[HoldfastError]]:
    """Rob's command runs, and behind it waits a line of his."""
    made("{work}/go", "fifo")(stage, AGENT)
    entered("read -r x < {work}/go; echo $((6*7))-through")(stage, AGENT)
    state("working")(stage, AGENT)
    return entering(stage, "{trap}")


def released(stage: Stage) -> None:
    opened("{work}/go")(stage, "")
    seen("42-through")(stage, "")


def test_with_the_gate_off_a_line_typed_ahead_runs_after_the_seizure(theatre: Theatre) -> None:
    with theatre.stage(NOTHING) as stage:
        thread, refused = ahead(stage)
        thread.join()
        seized(stage)
        released(stage)
        assert stage.until(stage.sprung) and not refused


@pytest.mark.requirement("A5", "A8", "M7")
def test_a_line_typed_ahead_never_runs_after_a_seizure(theatre: Theatre) -> None:
    with theatre.stage(NOTHING) as stage:
        check.in_force(stage, check.ALLOWING)
        thread, _ = ahead(stage)
        waits_or_is_recorded(stage)
        since = seized(stage)
        released(stage)
        thread.join(20)
        settled(stage)
        mine(stage, "true")
        assert not stage.sprung() and not of_rob(stage, since)


def waits_or_is_recorded(stage: Stage) -> None:
    """Rob's second line has reached the host: its text part is in the journal."""
    trap = stage.names["mark"].encode().hex()
    assert stage.until(
        lambda: any(
            trap in str(each["body"].get("data", "")) for each in log(stage, "--kind", "input")
        )
    )


@pytest.mark.requirement("A5", "A8", "M7")
def test_a_line_that_is_held_cannot_be_approved_after_a_seizure(theatre: Theatre) -> None:
    with theatre.stage(NOTHING) as stage:
        check.in_force(stage, "held")
        thread, _ = entering(stage, "{trap}")
        assert stage.until(lambda: bool(check.approvals(stage)))
        [approval] = check.approvals(stage)
        since = seized(stage)
        thread.join(20)
        assert not thread.is_alive()
        assert theatre.hold("approve", approval["id"]).returncode != 0
        assert not check.approvals(stage)
        check.in_force(stage, check.ALLOWING)
        mine(stage, "true")
        assert not stage.sprung() and not of_rob(stage, since)


@pytest.mark.requirement("A8")
def test_a_line_that_is_held_runs_once_it_is_approved(theatre: Theatre) -> None:
    with theatre.stage(NOTHING) as stage:
        check.in_force(stage, "held")
        thread, refused = entering(stage, "{trap}")
        assert stage.until(lambda: bool(check.approvals(stage)))
        [approval] = check.approvals(stage)
        assert not stage.sprung()
        assert AGENT in check.mentioned(approval, check.actor_names(stage))
        assert theatre.hold("--as", AGENT, "approve", approval["id"]).returncode != 0, "one's own"
        theatre.hold.ok("approve", approval["id"])
        thread.join(20)
        assert stage.until(stage.sprung) and not refused


@pytest.mark.requirement("A8")
def test_a_line_sent_just_before_a_seizure_is_judged(theatre: Theatre) -> None:
    with theatre.stage(NOTHING) as stage:
        check.in_force(stage, "forbidden")
        for _ in range(ROUNDS):
            thread, refused = entering(stage, "{trap}")
            seized(stage)
            thread.join(20)
            assert refused
            mine(stage, "true")
            yielded(stage)
        assert not stage.sprung()


@pytest.mark.requirement("A5", "M7")
def test_nothing_of_the_loser_commits_after_a_seizure(theatre: Theatre) -> None:
    with theatre.stage(NOTHING) as stage:
        check.in_force(stage, check.ALLOWING)
        lines = Path(stage.fill("{work}/lines"))
        for round_ in range(ROUNDS):
            writer = Writer(stage, f"echo {round_} >> {lines}")
            writer.start()
            assert stage.until(writer.at_work)
            since = seized(stage)
            writer.join(20)
            assert writer.refused is not None and not writer.is_alive()
            mine(stage, f"echo over >> {lines}")
            assert not of_rob(stage, since), "it began after the seizure"
            yielded(stage)
        written = lines.read_text().splitlines()
        assert written.count("over") == ROUNDS
        assert written[-1] == "over"


class Writer(threading.Thread):
    """Rob sends a line again and again, until he is refused."""

    def __init__(self, stage: Stage, line: str) -> None:
        super().__init__()
        self.session = stage.theatre.client(AGENT).session(stage.session)
        self.line = line
        self.sent = 0
        self.refused: HoldfastError | None = None

    def at_work(self) -> bool:
        return self.sent > 2

    def run(self) -> None:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self.session.type(self.line, enter=True)
            except HoldfastError as refusal:
                self.refused = refusal
                return
            self.sent += 1


def yielded(stage: Stage) -> None:
    stage.theatre.client("").session(stage.session).yield_turn()
