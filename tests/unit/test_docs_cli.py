"""The documents say everything the command can do: a verb, option, error, field or setting that is
not described fails here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.cli.dispatch import VERBS, load
from holdfast.host.config import Config
from holdfast.model import home
from holdfast.model.actor import Actor
from holdfast.model.admission import DeviceInfo, InviteInfo
from holdfast.model.envelope import Envelope
from holdfast.model.errors import by_code
from holdfast.model.gate_facts import Facts
from holdfast.model.gate_policy import Explanation, JudgedLine, PartShown, PolicyInfo
from holdfast.model.graph import Graph, Lock, OpenFile, Pipe, Process, Socket, Terminal
from holdfast.model.info import (
    BlameLine,
    CommandRecord,
    Finding,
    HostInfo,
    Judgement,
    LeaseInfo,
    SessionInfo,
)
from holdfast.model.movability import (
    Movability,
    MoveEstimate,
    MoveFinding,
    NeededFile,
    ProcessMovability,
)
from holdfast.model.record import Record
from holdfast.model.shell_state import Change
from holdfast.model.size import Size
from holdfast.model.state import Ending, Level, SessionState
from holdfast.model.turn_info import Handoff, Receipt, TurnInfo, TurnMove, WaitingInfo
from holdfast.wire.messages import session as m
from unit.scripts import script

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORDS: tuple[type[Record], ...] = (
    *(SessionInfo, CommandRecord, Ending, Size, HostInfo, Finding),
    *(Actor, Envelope, TurnInfo, WaitingInfo, Receipt, Handoff, TurnMove, Change),
    *(BlameLine, Judgement, LeaseInfo, InviteInfo, DeviceInfo),
    *(Graph, Process, OpenFile, Lock, Pipe, Socket, Terminal),
    *(m.StateEvent, m.ScreenShown, m.Accepted),
    *(PolicyInfo, JudgedLine, Explanation, PartShown, Facts),
    *(Movability, ProcessMovability, MoveFinding, MoveEstimate, NeededFile),
)


def sections(name: str) -> dict[str, str]:
    """Each heading's own text, by the heading without its marks."""
    parts = re.split(r"^#+ (.+)$", (DOCS / name).read_text(), flags=re.MULTILINE)
    return {
        title.replace("`", "").strip(): text
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_and_option_is_documented(verb: str) -> None:
    text = sections("cli.md").get(f"hold {verb}")
    assert text is not None, f"docs/cli.md has no section `hold {verb}`"
    for action in load(verb).parser()._actions:
        for flag in set(action.option_strings) - {"-h", "--help"}:
            assert re.search(rf"`[^`\n]*(?<![\w-]){flag}(?![\w-])[^`\n]*`", text), flag
        if not action.option_strings and action.choices is not None:
            for choice in action.choices:
                assert str(choice) in text
    assert "```" in text, f"`hold {verb}` has no example"


def test_no_verb_is_documented_that_does_not_exist() -> None:
    titles = [title for title in sections("cli.md") if title.startswith("hold ")]
    assert sorted(titles) == sorted(f"hold {verb}" for verb in VERBS)


def test_the_field_tables_are_written_from_todays_schema() -> None:
    made = script("protocol-reference")
    page = made.CLI.read_text(encoding="utf-8")
    assert page == made.cli(page), "run `make schema`"


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record.__name__))
def test_every_json_field_is_documented(record: type[Record]) -> None:
    text = sections("cli.md").get(record.__name__)
    assert text is not None, f"docs/cli.md has no section {record.__name__}"
    documented = set(re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE))
    # The `id` of an answer numbers a request on its connection; it is not printed.
    hidden = {"id"} if issubclass(record, m.Answer) else set()
    assert documented == set(record._fields) - hidden


def test_states_and_levels_are_documented() -> None:
    text = (DOCS / "cli.md").read_text()
    for word in (*SessionState, *Level):
        assert f"`{word}`" in text


def test_every_error_is_documented_with_its_exit_status() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \| (yes|no) \|",
        (DOCS / "errors.md").read_text(),
        flags=re.MULTILINE,
    )
    expected = [
        (code, str(kind.exit_status), "yes" if kind.retryable else "no")
        for code, kind in by_code().items()
    ]
    # `usage` is the command's own: it never travels.
    assert sorted(rows) == sorted([*expected, ("usage", "64", "no")])


def test_every_setting_is_documented_with_its_default() -> None:
    text = (DOCS / "configuration.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([^|`]*)`? \|", text, flags=re.MULTILINE))
    for field, default in Config._defaults.items():
        assert rows.get(field) == ("none" if default in (None, "", ()) else str(default)), field
    asked = re.findall(r'environment\.get\("(\w+)"', Path(home.__file__).read_text())
    assert "HOLDFAST_HOME" in asked
    for variable in set(asked) - {"HOME"}:
        assert f"| `{variable}` |" in text
