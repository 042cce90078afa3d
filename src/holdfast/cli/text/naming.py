"""What an actor is called in words for one reader: by its name, except that the reader is "you"."""

from __future__ import annotations

from holdfast.cli.text.sanitize import sanitize


def called(name: str, you: str, nobody: str = "nobody") -> str:
    """`you`: the reader's own name, as the host has it; empty: not known."""
    if not name:
        return nobody
    return "you" if name == you else sanitize(name)


def has(subject: str) -> str:
    return "have" if subject == "you" else "has"
