"""A policy that a service decides: what is posted, what counts as an answer, and how long the host
waits for one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from holdfast.adapters.webhook.policy import ANSWER_S, PAUSE_S, WebhookPolicy
from holdfast.host.gate import policy_source
from holdfast.model.errors import PolicyInvalid
from holdfast.model.gate import Outcome
from unit.gating import asked, effect, part


class Service:
    """Answers with what it is given; `silent` until it is let go."""

    def __init__(self) -> None:
        self.answer, self.status = b'{"outcome": "allow"}', 200
        self.posted: list[Any] = []
        self.silent = False
        self.let_go = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.posted.append(json.loads(body))
                if service.silent:
                    service.let_go.wait(30)
                self.send_response(service.status)
                self.end_headers()
                self.wfile.write(service.answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def policy(self) -> WebhookPolicy:
        return WebhookPolicy(
            f'[webhook]\nurl = "http://127.0.0.1:{self.server.server_port}/j?a=1"\n'
        )


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    try:
        yield made
    finally:
        made.let_go.set()
        made.server.shutdown()
        made.server.server_close()


def test_a_service_gets_the_effect_and_its_facts_and_its_answer_counts(service: Service) -> None:
    policy = service.policy()
    assert asked(policy, effect("rm x", part("bot"))).outcome is Outcome.ALLOW
    (posted,) = service.posted
    assert posted["effect"]["text"] == "rm x" and posted["facts"]["destructive"] == ["rm"]
    assert posted["effect"]["contributors"][0]["name"] == "bot"
    service.answer = b'{"outcome": "hold", "reason": "wait", "quorum": 2, "approvers": ["human"]}'
    held = asked(policy, effect("rm x", approved=("bob",)))
    assert (held.outcome, held.reason, held.quorum) == (Outcome.HOLD, "wait", 2)
    assert held.approvers == ("human",) and service.posted[1]["approved"][0]["name"] == "bob"


@pytest.mark.parametrize(
    "answer",
    [b"", b"x", b"[]", b"{}", b'{"outcome": "yes"}', b'{"outcome": "hold", "quorum": 0}',
     b'{"outcome": "allow", "reason": 1}', b'{"outcome": "hold", "approvers": "bob"}',
     b'{"outcome": "allow"}' + b" " * (70 << 10)],
)  # fmt: skip
def test_what_is_no_verdict_is_a_refusal(service: Service, answer: bytes) -> None:
    service.answer = answer
    assert asked(service.policy(), effect("ls")).outcome is Outcome.REFUSE


def test_an_error_of_the_service_is_a_refusal(service: Service) -> None:
    service.status = 500
    assert asked(service.policy(), effect("ls")).outcome is Outcome.REFUSE
    policy = service.policy()
    service.server.shutdown()
    service.server.server_close()
    assert asked(policy, effect("ls")).outcome is Outcome.REFUSE


def test_no_answer_in_time_is_a_refusal_and_the_daemon_waits_no_longer(service: Service) -> None:
    service.silent = True
    policy = service.policy()
    began = time.monotonic()
    said = asked(policy, effect("ls"))
    assert said.outcome is Outcome.REFUSE and f"{ANSWER_S:g} s" in said.reason
    again = [asked(policy, effect("ls")).outcome for _ in range(20)]
    assert set(again) == {Outcome.REFUSE} and len(service.posted) == 1, "not asked for a while"
    assert time.monotonic() - began < PAUSE_S, "twenty decisions that each waited would take it all"


@pytest.mark.parametrize(
    "text",
    ['[webhook]\nurl = "ftp://h/x"', "[webhook]\nurl = 1", "[webhook]", 'webhook = "http://h"',
     '[webhook]\nurl = "http://h:x/"', '[webhook]\nurl = "http://h/"\nother = 1',
     'default = "allow"\n[webhook]\nurl = "http://h/"'],
)  # fmt: skip
def test_a_webhook_that_is_written_wrong_is_refused(text: str) -> None:
    given = policy_source.read(text, "hook.toml", "toml")
    with pytest.raises(PolicyInvalid):
        policy_source.prepare(given)
