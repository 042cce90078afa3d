"""The published schema and the web app's messages are generated from today's declarations."""

from __future__ import annotations

import pytest

from holdfast.wire.messages.base import Request
from unit.scripts import script


def test_the_schema_is_written_from_todays_declarations() -> None:
    made = script("protocol-schema")
    assert made.DOCUMENT.read_text(encoding="utf-8") == made.document(), "run `make schema`"


def test_the_web_apps_messages_are_written_from_the_schema() -> None:
    made = script("web-protocol")
    written = {path: path.read_text(encoding="utf-8") for path in made.INTO.iterdir()}
    assert written == made.files(), "run `make schema`"


# Clients say hello, only raw channels have gaps, and links are opened by hosts.
NOT_SENT_TO_PAGES = {"hello", "gap", "open_link", "link_opened"}


def test_the_web_app_reads_every_event_of_a_host() -> None:
    """One that it does not know ends its connection."""
    messages = script("protocol-schema").schema()["messages"]
    events = {tag for tag, each in messages.items() if "role" not in each}
    assert "rehomed" in events
    assert events - NOT_SENT_TO_PAGES <= set(script("web-protocol").READ)


def test_a_request_that_does_not_name_its_answer_is_an_error_not_a_gap() -> None:
    class Unanswered(Request, tag="unanswered"):
        """Nothing is said of an answer."""

    with pytest.raises(SystemExit, match="Unanswered"):
        script("protocol-schema").Schema().request(Unanswered)


def test_a_field_has_its_type_its_default_and_its_comment() -> None:
    submit = script("protocol-schema").schema()["messages"]["submit"]
    assert submit["answered_by"] == "accepted"
    assert submit["signed"] is True
    assert submit["fields"]["enter"] == {
        "type": "bool",
        "default": True,
        "doc": "whether a carriage return follows",
    }
