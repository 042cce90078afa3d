"""A host with a policy of the tests: rules in a JSON file that is read at each judgement, so that a
test changes them as it goes. The policy is put into the daemon as it starts; the project's own
policies have tests of their own."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from process.commanding import Hold

_POLICY = """
import json, os, time
if 'HOLDFAST_SUPERVISOR_FD' in os.environ:
    from holdfast.host.daemon import Daemon
    from holdfast.model.gate import ALLOWED, Outcome, Verdict

    RULES, ASKED = {rules!r}, {asked!r}

    class FilePolicy:
        def _rules(self):
            with open(RULES) as file:
                return json.load(file)

        def in_force(self, session, labels):
            return os.path.exists(RULES)

        def judge(self, effect):
            with open(ASKED, 'a') as file:
                file.write(json.dumps(effect.pack()) + chr(10))
            rules = self._rules()
            time.sleep(rules.get('slow_s', 0))
            if rules.get('fails'):
                raise RuntimeError('the disk with the rules is gone')
            if effect.kind not in rules.get('kinds', [effect.kind]):
                return ALLOWED
            unknown = not effect.text_known and rules.get('refuse_unknown')
            if unknown or any(each in effect.text for each in rules.get('refuse', [])):
                return Verdict(Outcome.REFUSE, 'no such lines here', 'host')
            foreign = {{each.actor for each in effect.contributors}} - {{effect.actor}}
            if rules.get('refuse_foreign') and foreign:
                return Verdict(Outcome.REFUSE, 'another had a part in it', 'host')
            quorum = rules.get('quorum', 1)
            if any(each in effect.text for each in rules.get('hold', [])):
                if len(effect.approved_by) < quorum:
                    approvers = tuple(rules.get('approvers', []))
                    return Verdict(Outcome.HOLD, 'two must agree', 'host', quorum, approvers)
            return ALLOWED

    Daemon.gate_policy = FilePolicy()

    from holdfast.adapters.journal_files.writer import JournalWriter
    from holdfast.model.errors import StorageFailed

    def full_sometimes(real):
        def call(*words, **options):
            if os.path.exists({full!r}):
                raise StorageFailed('the disk is full')
            return real(*words, **options)
        return call

    JournalWriter.record = full_sometimes(JournalWriter.record)
    JournalWriter.reserve = full_sometimes(JournalWriter.reserve)
"""


class GatedHold(Hold):
    """`rules` puts other rules in force; `asked` is what the policy was asked."""

    def __init__(self) -> None:
        super().__init__()
        self._files = tempfile.TemporaryDirectory(prefix="hg-", dir="/tmp")
        site = Path(self._files.name)
        self._rules, self._asked = site / "rules.json", site / "asked.jsonl"
        self._full = site / "full"
        source = _POLICY.format(
            rules=str(self._rules), asked=str(self._asked), full=str(self._full)
        )
        (site / "sitecustomize.py").write_text(source)
        self.env["PYTHONPATH"] = str(site)

    def close(self) -> None:
        super().close()
        self._files.cleanup()

    @contextmanager
    def acting(self, actor: str) -> Iterator[None]:
        """Commands are this actor's."""
        self.env["HOLDFAST_AS"] = actor
        try:
            yield
        finally:
            del self.env["HOLDFAST_AS"]

    def rules(self, **rules: Any) -> None:
        new = self._rules.with_suffix(".new")
        new.write_text(json.dumps(rules))
        os.replace(new, self._rules)

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """No journal takes anything."""
        self._full.touch()
        try:
            yield
        finally:
            self._full.unlink()

    def no_rules(self) -> None:
        self._rules.unlink(missing_ok=True)

    def asked(self) -> list[dict[str, Any]]:
        text = self._asked.read_text() if self._asked.exists() else ""
        return [json.loads(line) for line in text.splitlines()]

    def lines_asked(self) -> list[str]:
        return [each["text"] for each in self.asked() if each["kind"] == "line"]
