"""N8: `hold certificate`, with a real host, and without one to check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from process.commanding import Hold


@pytest.mark.requirement("N8")
def test_a_certificate_is_made_by_a_host_and_checked_without_one(
    host_home: Hold, fresh_home: Hold, tmp_path: Path
) -> None:
    host_home.ok("run", "-d", "--name", "kept", "--", "sleep", "1000")
    file, records = tmp_path / "kept.certificate", tmp_path / "kept.records"
    page = host_home.ok("certificate", "kept", "-o", str(file), "--records", str(records))
    session = json.loads(host_home.ok("show", "kept", "--json"))["id"]
    assert f"continuity of session {session} (kept)" in page
    assert "unbroken" in page and "epoch 1" in page
    printed = json.loads(host_home.ok("certificate", "kept", "--json"))
    assert printed["session"] == session and printed["holdfast"] == "certificate v1"
    # No host has to be there.
    fresh_home.ok("certificate", "check", str(file), "--session", session)
    said = fresh_home.ok("certificate", "check", str(file), "--records", str(records))
    assert said.startswith("valid\n") and "say the same" in said
    answer = json.loads(fresh_home.ok("certificate", "check", str(file), "--json"))
    assert (answer["valid"], answer["fault"], answer["session"]) == (True, "", session)


def test_a_certificate_that_is_none_or_was_altered_is_refused(
    host_home: Hold, fresh_home: Hold, tmp_path: Path
) -> None:
    host_home.ok("run", "-d", "--name", "altered", "--", "sleep", "1000")
    file = tmp_path / "altered.certificate"
    host_home.ok("certificate", "altered", "-o", str(file))
    whole = file.read_text()
    file.write_text(whole.replace('"altered"', '"another"'))
    done = fresh_home("certificate", "check", str(file))
    assert done.returncode == 1 and done.stdout.startswith("invalid: ")
    done = fresh_home("certificate", "check", str(file), "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["valid"] is False
    file.write_text(whole)
    done = fresh_home("certificate", "check", str(file), "--session", "0" * 26)
    assert done.returncode == 1 and "it is about session" in done.stdout
    for text in ("", "{}", whole[:-20], "[" * 5000):
        file.write_text(text)
        fresh_home.fails("invalid_argument", "certificate", "check", str(file))


def test_a_certificate_of_a_session_that_ended_says_so(host_home: Hold, tmp_path: Path) -> None:
    host_home.ok("run", "-d", "--name", "over", "--", "true")
    host_home("wait", "over", "--for", "end")
    file = tmp_path / "over.certificate"
    assert "it has ended" in host_home.ok("certificate", "over", "-o", str(file))
    host_home.ok("certificate", "check", str(file))
