"""Scenarios that the gate has no mechanism against, and why. They still spring with the gate off;
docs/gate.md lists them too, and a test compares the two."""

from __future__ import annotations

UNCOVERED: dict[str, str] = {}
