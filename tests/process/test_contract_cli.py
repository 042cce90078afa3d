"""`hold contract` on a real host."""

from __future__ import annotations

from holdfast.model.contract import CONTRACT
from holdfast.model.state import Level
from process.commanding import Hold


def test_every_promise_is_listed_with_its_state_on_this_host(host_home: Hold) -> None:
    answer = host_home.json("contract", "--json")
    assert answer["level"] in set(Level)
    assert [each["id"] for each in answer["promises"]] == [each.id for each in CONTRACT]
    states = {each["id"]: each["state"] for each in answer["promises"]}
    assert states["S1"] == "held"
    assert set(states.values()) <= {
        "held",
        "not available at this level",
        "handed to the application",
    }
    page = host_home.ok("contract")
    assert f"this host gives level {answer['level']}" in page
    assert all(f"\n{each.id} " in page for each in CONTRACT)
