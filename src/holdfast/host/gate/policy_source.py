"""What somebody gives as a policy becomes one that can be asked, or is refused with line and
reason."""

from __future__ import annotations

import tomllib

from holdfast.adapters.cedar.engine import CedarPolicy
from holdfast.adapters.cedar.starters import PREFIX, starter
from holdfast.adapters.cedar.toml_rules import to_cedar
from holdfast.adapters.webhook.policy import WebhookPolicy, is_webhook
from holdfast.model.errors import PolicyInvalid
from holdfast.model.record import Record
from holdfast.ports.policy_engine import PreparedPolicy

POLICY_MAX_BYTES = 256 << 10  # of one text: it is kept in memory, and shown whole
_SOURCE_MAX_CHARS = 200

CEDAR, TOML, WEBHOOK = "cedar", "toml", "webhook"


class PolicySource(Record):
    """A policy as it was given."""

    text: str
    source: str
    format: str


def read(text: str, source: str, format: str) -> PolicySource:
    """With the text of a starter, and its format, if it was not said."""
    if source.startswith(PREFIX):
        return PolicySource(starter(source.removeprefix(PREFIX)), source, TOML)
    if len(text.encode(errors="replace")) > POLICY_MAX_BYTES:
        raise PolicyInvalid(f"a policy has at most {POLICY_MAX_BYTES >> 10} KiB")
    if format not in ("", CEDAR, TOML):
        raise PolicyInvalid(f"not a format: {format[:20]!r}", hint="cedar or toml")
    format = format or _guessed(text)
    if format == TOML and is_webhook(text):
        format = WEBHOOK
    return PolicySource(text, source[:_SOURCE_MAX_CHARS], format)


def prepare(given: PolicySource) -> PreparedPolicy:
    """Raises PolicyInvalid."""
    if given.format == WEBHOOK:
        return WebhookPolicy(given.text)
    cedar = to_cedar(given.text) if given.format == TOML else given.text
    return CedarPolicy(cedar)


def _guessed(text: str) -> str:
    """No TOML contains a Cedar statement, and no Cedar is TOML."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return CEDAR
    return TOML
