"""The machine's own package source, turned to a newer suite."""

from __future__ import annotations

import pytest

from holdfast.adapters.criu.install import UnavailableError, source_entry

STANZAS = """\
# a comment with a colon: here
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/some.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
Components: main
"""


def test_a_stanza_keeps_its_place_and_key_and_changes_its_suite() -> None:
    name, text = source_entry({"debian.sources": STANZAS}, "bookworm", "sid")
    assert name == "newer.sources"
    assert text.splitlines() == [
        "Types: deb",
        "URIs: http://mirror.example/debian",
        "Suites: sid",
        "Components: main",
        "Signed-By: /usr/share/keyrings/some.gpg",
    ]


def test_a_one_line_entry_keeps_its_options() -> None:
    line = "deb [signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib # ours\n"
    name, text = source_entry({"sources.list": "# none\n" + line}, "bookworm", "sid")
    assert name == "newer.list"
    assert text == "deb [signed-by=/k.gpg] http://mirror.example/debian sid main\n"


def test_a_machine_without_a_source_for_its_release_says_so() -> None:
    others = {"other.list": "deb http://mirror.example/x bookworm-security main\n"}
    with pytest.raises(UnavailableError, match="bookworm"):
        source_entry(others, "bookworm", "sid")
