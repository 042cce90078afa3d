"""A policy that a service decides: the effect is posted as JSON, the answer is a verdict as JSON.

    [webhook]
    url = "http://127.0.0.1:8181/judge"

The gate asks in the daemon's event loop, and every session waits meanwhile. So a worker thread
speaks HTTP, and the loop waits ANSWER_S for it, whatever the service does: dripping bytes or never
accepting included. No answer by then is a refusal, and for PAUSE_S the service is not asked again:
it can hold up the daemon for a twentieth of its time at most. A slow decision (a person's) is
what `hold` is for.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import tomllib
from concurrent.futures import Future
from typing import Any
from urllib.parse import urlsplit

from holdfast.model.errors import PolicyInvalid
from holdfast.model.gate import EffectKind, Outcome, Verdict
from holdfast.ports.policy_engine import Question

ANSWER_S = 0.25  # the longest that the event loop waits for one decision
PAUSE_S = 5.0  # without asking, after no answer came
_ANSWER_MAX_BYTES = 64 << 10
_REASON_MAX_CHARS = 500
_QUORUM_MAX = 16


def is_webhook(text: str) -> bool:
    """Whether this TOML is a webhook's, and not rules."""
    try:
        return "webhook" in tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False


class WebhookPolicy:
    """One service. Making it raises PolicyInvalid."""

    rules = 1
    patterns: tuple[str, ...] = ()

    def __init__(self, text: str) -> None:
        read = tomllib.loads(text)
        table = read["webhook"]
        if set(read) != {"webhook"} or not isinstance(table, dict) or set(table) != {"url"}:
            raise PolicyInvalid("a webhook is a table [webhook] with its url, and nothing else")
        url = urlsplit(str(table["url"]))
        try:
            port = url.port
        except ValueError:
            port = -1
        if url.scheme not in ("http", "https") or not url.hostname or port == -1:
            raise PolicyInvalid("the url of a webhook is http:// or https://, with a host")
        self._secure, self._host, self._port = url.scheme == "https", url.hostname, port
        self._path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        self._not_before = 0.0

    def concerns(self, kind: EffectKind) -> bool:
        """Only the service knows, so it is asked about everything."""
        return True

    def decide(self, question: Question) -> Verdict:
        if time.monotonic() < self._not_before:
            return _refused("it did not answer a moment ago")
        answer: Future[bytes] = Future()
        body = _body(question)
        threading.Thread(target=self._ask, args=(body, answer), daemon=True).start()
        try:
            return _verdict(answer.result(ANSWER_S))
        except TimeoutError:
            self._not_before = time.monotonic() + PAUSE_S
            return _refused(f"it did not answer within {ANSWER_S:g} s")
        except Exception as error:  # whatever it is, nothing may pass because of it
            return _refused(str(error) or type(error).__name__)

    def _ask(self, body: bytes, answer: Future[bytes]) -> None:
        """In a thread of its own, which ends soon after nobody waits for it any longer."""
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=ANSWER_S)
        try:
            connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            given = connection.getresponse()
            said = given.read(_ANSWER_MAX_BYTES + 1)
            if given.status != 200 or len(said) > _ANSWER_MAX_BYTES:
                raise ValueError(f"it answered with status {given.status}, {len(said)} bytes")
            answer.set_result(said)
        except Exception as error:
            answer.set_exception(error)
        finally:
            connection.close()


def _body(question: Question) -> bytes:
    return json.dumps(
        {
            "effect": question.effect.pack(),
            "facts": question.facts.pack(),
            "scores": [each.pack() for each in question.scores],
            "approved": [
                {"actor": actor, "name": name, "kind": kind}
                for actor, name, kind in question.approved
            ],
        }
    ).encode()


def _verdict(said: bytes) -> Verdict:
    """Raises ValueError for anything that is no verdict."""
    read: Any = json.loads(said)
    if not isinstance(read, dict) or read.get("outcome") not in list(Outcome):
        raise ValueError("its answer is no verdict")
    reason, quorum = read.get("reason", ""), read.get("quorum", 1)
    approvers = read.get("approvers", [])
    if not isinstance(reason, str) or type(quorum) is not int or not 1 <= quorum <= _QUORUM_MAX:
        raise ValueError("its answer is no verdict")
    if not isinstance(approvers, list) or not all(isinstance(each, str) for each in approvers):
        raise ValueError("its answer is no verdict")
    outcome = Outcome(read["outcome"])
    return Verdict(
        outcome, reason[:_REASON_MAX_CHARS], "" if outcome is Outcome.ALLOW else "webhook",
        quorum, tuple(approvers),
    )  # fmt: skip


def _refused(why: str) -> Verdict:
    return Verdict(Outcome.REFUSE, f"the webhook of the policy failed: {why}", policy="webhook")
