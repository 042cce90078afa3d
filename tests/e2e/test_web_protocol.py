"""The browser's half of the protocol against a real host and relay: joining, reading, typing, and
coming back. With the browser's own cryptography and with the library's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from e2e.probing import Probe, built
from process.reaching import Faraway


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("probe"))


@pytest.fixture(scope="module")
def box(program: Path) -> Iterator[Faraway]:
    made = Faraway()
    yield made
    made.close()


@pytest.fixture(params=["webcrypto", "noble"])
def probe(program: Path, request: pytest.FixtureRequest) -> Iterator[Probe]:
    made = Probe(program, request.param)
    assert made("keys") == request.param
    yield made
    made.close()


@pytest.fixture
def page(program: Path) -> Iterator[Probe]:
    made = Probe(program)
    yield made
    made.close()


def _opened(page: Probe, box: Faraway, name: str, *, role: str = "admin") -> str:
    """A shell that this page has open; gives the machine."""
    box.host.shell(name)
    machine = page.join(box.link(role=role))
    page("open", machine, page("sessionNamed", name))
    page("link", "online")
    return machine


def test_a_link_lets_a_page_in_and_it_types_and_reads_the_echo(probe: Probe, box: Faraway) -> None:
    name = f"first-{probe('keys')}"
    _opened(probe, box, name)
    probe("input", "echo one-$((40 + 2))\r")
    probe("see", "one-42")
    probe("settled")
    assert probe("holds", True)["turn"]["holder_name"] == probe("me")
    assert "one-42" in box.host.ok("screen", name)


def test_nothing_is_lost_or_typed_twice_when_the_relay_is_lost(probe: Probe, box: Faraway) -> None:
    name = f"cut-{probe('keys')}"
    _opened(probe, box, name)
    probe("input", "cat > /dev/null\r")
    probe("see", "cat > /dev/null")
    for cut in range(3):
        for key in range(8):
            probe("input", f"<{cut}.{key}>")
        probe("cut")  # some of them are on their way
        probe("input", f"<{cut}.away>")
        probe("link", "online")
        probe("settled")
    probe("see", "<2.away>")
    wanted = "".join(f"<{cut}.{key}>" for cut in range(3) for key in (*range(8), "away"))
    shown = box.host.ok("screen", name).replace("\n", "")
    assert wanted in shown
    assert probe("seen").replace("\r\n", "").replace("\r", "").count("<0.0>") == 1
    assert not {each["kind"] for each in probe("notices")} & {
        "refused",
        "input_unknown",
        "not_sent",
    }


def test_output_goes_on_where_it_was_without_a_new_screen(page: Probe, box: Faraway) -> None:
    _opened(page, box, "gap")
    page("see", "$")
    page("input", "for i in 1 2 3 4 5 6; do echo line-$i; sleep 0.2; done; echo all-$((1+1))\r")
    page("see", "line-2")
    page("cut")
    page("see", "all-2")
    assert page("resyncs") == 1
    assert [page("count", f"line-{each}\r") for each in range(1, 7)] == [1] * 6


def test_a_new_page_of_the_same_device_needs_no_new_link(page: Probe, box: Faraway) -> None:
    machine = _opened(page, box, "again")
    page("input", "echo before-$((1 + 1))\r")
    page("see", "before-2")
    page("reload")
    page("machineOnline")
    page("open", machine, "again")
    page("see", "before-2")
    page("input", "echo after-$((1 + 1))\r")
    page("see", "after-2")


def test_much_output_comes_whole_or_as_a_new_screen(probe: Probe, box: Faraway) -> None:
    _opened(probe, box, f"flood-{probe('keys')}")
    probe("see", "$")
    probe("input", "seq 1 200000; echo finished-$((1 + 1))\r")
    probe("see", "finished-2")
    assert "200000" in probe("seen")


def test_a_paste_of_a_megabyte_arrives_whole(page: Probe, box: Faraway, tmp_path: Path) -> None:
    _opened(page, box, "paste")
    copy = tmp_path / "copy"
    page.ask("requestTurn")
    page("noticed", "handed_over")  # the shell has told its state: nothing but ours is typed now
    page("input", f"stty -echo; echo ready-$((1+1)); cat > {copy}\r")
    page("see", "ready-2")
    page("state", "secret")
    line = "0123456789 äöü 漢字 " * 4
    text = "".join(f"{at:06d} {line}\n" for at in range(10_000))
    assert len(text.encode()) > 1 << 20
    page("paste", text)
    page("input", "\x04")
    page("state", "prompt")
    assert copy.read_text() == text


def test_who_may_only_look_looks(page: Probe, box: Faraway) -> None:
    _opened(page, box, "look", role="read")
    assert page("observing") is True
    assert page("rights") == ["observe"]
    page("input", "echo no\r")
    assert page("noticed", "refused")["trouble"]["code"] == "not_permitted"
    assert page.refused("submit", "echo no", True) == "not_permitted"


def test_who_lost_the_right_to_type_types_again_when_it_is_given_back(
    page: Probe, box: Faraway
) -> None:
    _opened(page, box, "regained")
    me = page("me")
    box.host.ok("grant", me, "read", "regained")
    page("observes", True)
    page("link", "online")
    box.host.ok("grant", me, "execute", "regained")
    page("observes", False)
    page("link", "online")
    page("input", "echo back-$((1 + 1))\r")
    page("see", "back-2")


def test_the_turn_is_asked_for_given_and_seized(page: Probe, box: Faraway) -> None:
    _opened(page, box, "turns")
    box.client.ok("turn", "box/turns", "request")
    page("holds", False)
    page("input", "echo mine\r")
    assert page("noticed", "refused")["trouble"]["code"] == "turn_held"
    waiting = page.ask("requestTurn", "please")
    assert waiting["waiting"] and not waiting["yours"]
    box.client.ok("turn", "box/turns", "yield")
    page("holds", True)
    page("input", "echo mine-$((1+1))\r")
    page("see", "mine-2")
    page.ask("yieldTurn")
    receipt = page.ask("seize", {"halt": True, "reason": "look"})
    assert receipt["frozen"] and receipt["scope"] == "session"
    page("state", "halted")
    page("input", "x")
    page.ask("resume")
    page("state", "prompt")


def test_what_is_known_of_a_session_can_be_asked(page: Probe, box: Faraway) -> None:
    machine = _opened(page, box, "asked")
    page.ask("submit", "echo hello-$((1+1))", True)
    page("see", "hello-2")
    page("state", "prompt")
    assert "hello-2" in page.ask("screen")["text"]
    assert "bash" in [each["name"] for each in page.ask("graph")["processes"]]
    kinds = {each["kind"] for each in page.ask("journal")["entries"]}
    assert {"began", "attached", "input"} <= kinds
    assert any("hello-2" in each["text"] for each in page.ask("blame")["lines"])
    assert page.ask("catchUp", 0)["through_seq"] > 0
    assert page("me") in page("actors")
    assert page("lastLine", "asked", "$")
    made = page.ask("invite", {"rights": ["read"], "expires_s": 600, "lasts_s": 3600})
    assert "/i#" in made["link"]
    assert page("preview", made["link"]) == box.relay.url.partition("//")[2]
    assert page("machines")[0]["key"] == machine


def test_an_end_is_told_with_its_status_and_found_later(page: Probe, box: Faraway) -> None:
    machine = _opened(page, box, "ends")
    page("input", "exit 7\r")
    assert page("link", "ended")["ending"]["code"] == 7
    session = page("info")["id"]
    assert page.refused("submit", "more", True) == "session_ended"
    page("open", machine, session)
    assert page("link", "ended")["ending"]["code"] == 7
    assert "exit 7" in page.ask("screen")["text"]


def test_a_session_that_is_not_there_is_refused(page: Probe, box: Faraway) -> None:
    machine = page.join(box.link())
    page("open", machine, "0" * 26)
    assert page("link", "refused")["trouble"]["code"] == "no_such_session"
    page("open", machine, "nobody")
    assert page("link", "refused")["trouble"]["code"] == "no_such_session"


def test_a_device_that_was_shut_out_is_told_so(page: Probe, box: Faraway) -> None:
    _opened(page, box, "shut")
    box.host.ok("device", "revoke", page("me"))
    assert page("link", "refused")["trouble"]["code"] == "grant_revoked"
    assert page("machineTrouble")["code"] == "grant_revoked"


def test_links_that_let_nobody_in_say_why(page: Probe, box: Faraway) -> None:
    link = box.link()
    assert page("join", "http://nowhere", "phone")["reason"] == "bad_link"
    assert page("join", link[:-3], "phone")["reason"] == "bad_link"
    front, _, secret = link.partition("#")
    name, _, key = secret.split(".")
    wrong = f"{front}#{name}.AAAAAAAAAAAAAAAAAAAAAA.{key}"
    assert page("join", wrong, "phone")["reason"] == "invalid"
    assert page("join", f"http://127.0.0.1:9/i#{secret}", "phone")["reason"] == "unreachable"
    assert page("join", link, "phone")["ok"]


def test_a_link_for_one_device_is_used_up(page: Probe, program: Path, box: Faraway) -> None:
    link = box.link()
    page.join(link)
    with closing(Probe(program)) as other:
        assert other("join", link, "other")["reason"] == "used"


def test_a_host_whose_daemon_is_replaced_is_come_back_to(page: Probe, box: Faraway) -> None:
    _opened(page, box, "daemon")
    page("input", "cat > /dev/null\r")
    page("see", "cat > /dev/null")
    page("input", "<one>")
    page("settled")
    box.host.ok("daemon", "restart")
    page("input", "<two>")
    page("see", "<two>")
    page("link", "online")
    page("settled")
    assert "<one><two>" in box.host.ok("screen", "daemon")
