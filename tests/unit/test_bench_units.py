"""The benchmark's own arithmetic: a wrong ratio or a silent gap would make its claims worthless."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bench import measure_stalled
from bench.chart import bound_of, svg
from bench.content import BLOCK_BYTES, block
from bench.report import as_json, document, write_results
from bench.results import Row, Target, cells, markdown_table, missed, plain_table
from bench.sampling import interleaved, medians, percentile

SPEED = Row("text", "MB/s", {"holdfast": 60.0, "tmux": 20.0}, "tmux", target=Target(">=", 3))
MACHINE = {
    "date": "today", "cpu": "abacus", "cores": 2, "kernel": "6", "python": "3.11",
    "load_average_before": [0.1], "versions": {"tmux": "3.3a"}, "missing": ["dtach"],
}  # fmt: skip


def test_a_ratio_is_holdfast_over_the_peer_and_decides_the_verdict() -> None:
    assert SPEED.ratio == 3.0
    assert SPEED.met is True
    slower = Row("text", "MB/s", {"holdfast": 59.0, "tmux": 20.0}, "tmux", target=Target(">=", 3))
    assert slower.met is False


@pytest.mark.parametrize(
    ("relation", "number", "met"),
    [
        ("<=", 1.5, True),
        ("<=", 1.51, False),
        (">=", 1.5, True),
        (">=", 1.49, False),
        ("<", 1.5, False),
    ],
)
def test_each_relation_holds_at_its_bound_as_it_reads(
    relation: str, number: float, met: bool
) -> None:
    target = Target(relation, 1.5)  # type: ignore[arg-type]
    assert target.met_by(number) is met


def test_a_missing_peer_gives_no_ratio_and_no_verdict_but_is_shown_and_counts_as_missed() -> None:
    row = Row("text", "MB/s", {"holdfast": 60.0}, "tmux", target=Target(">=", 3))
    assert row.ratio is None
    assert row.met is None
    assert cells(row)[2] == "n/a"
    assert cells(row)[-3:] == ["n/a tmux", "≥ 3×", "n/a"]
    assert missed([row, SPEED]) == [row]


def test_a_target_on_the_value_itself_needs_no_peer() -> None:
    row = Row("memory", "kB", {"holdfast": 99.0}, target=Target("<=", 100, "value"))
    assert row.met is True
    assert cells(row)[-3:] == ["–", "≤ 100 kB", "yes"]


def test_a_baseline_is_what_holdfast_is_held_against_and_stands_beside_it() -> None:
    row = Row("attach", "ms", {"holdfast": 2.2, "tmux": 9.0}, "after 1 MB", 2.0, Target("<=", 1.2))
    assert row.ratio == pytest.approx(1.1)
    assert cells(row)[1] == "2.20 ms (after 1 MB: 2.00 ms)"
    assert cells(row)[-3] == "1.10×"


def test_a_row_without_a_target_has_no_verdict() -> None:
    row = Row("rc", "ms", {"holdfast": 30.0, "tmux": 10.0}, "tmux")
    assert row.met is None
    assert missed([row]) == []
    assert cells(row)[-3:] == ["3.00× tmux", "–", "–"]


def test_percentiles_are_samples_by_nearest_rank() -> None:
    samples = [float(number) for number in range(1000, 0, -1)]
    assert percentile(samples, 50) == 500
    assert percentile(samples, 99) == 990
    assert percentile(samples, 100) == 1000
    assert percentile([7.0], 1) == 7.0
    with pytest.raises(ValueError, match="no samples"):
        percentile([], 50)


def test_repetitions_take_turns_in_alternating_order_and_the_warm_up_is_not_counted() -> None:
    calls: list[str] = []

    def action(name: str) -> Callable[[], float]:
        def act() -> float:
            calls.append(name)
            return float(len(calls))

        return act

    samples = interleaved({"a": action("a"), "b": action("b")}, repetitions=2, warm_up=1)
    assert calls == ["a", "b", "b", "a", "a", "b"]
    assert samples == {"a": [4.0, 5.0], "b": [3.0, 6.0]}
    assert medians(samples) == {"a": 4.5, "b": 4.5}


def test_tables_have_one_line_per_row_and_equal_columns() -> None:
    lines = markdown_table([SPEED, SPEED]).splitlines()
    assert len(lines) == 4
    assert len({line.count("|") for line in lines}) == 1
    assert len(plain_table([SPEED]).splitlines()) == 3


def test_the_chart_is_well_formed_and_draws_a_bar_for_each_value_and_the_bound() -> None:
    strange = Row(
        "a < b & c", "ms", {"holdfast": 1.0, "tmux": 2.0}, "tmux", target=Target("<=", 1.5)
    )
    root = ElementTree.fromstring(svg([strange]))
    space = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{space}rect")) == 2
    assert len(root.findall(f"{space}line")) == 1
    assert bound_of(strange) == 3.0


def test_the_document_names_command_machine_missing_peers_and_how_it_was_measured() -> None:
    text = document(MACHINE, [SPEED], [measure_stalled], "make bench")
    for expected in ("make bench", "abacus", "dtach", "| text |", "never reads", "not measured"):
        assert expected in text


def test_json_carries_samples_and_verdicts() -> None:
    row = Row("x", "ms", {"holdfast": 1.0, "tmux": 1.0}, "tmux", samples={"tmux": [1.0, 2.0]})
    made = json.loads(as_json(MACHINE, [row, SPEED]))
    assert made["rows"][0]["samples"] == {"tmux": [1.0, 2.0]}
    assert made["rows"][1]["met"] is True


def test_the_text_is_the_same_every_time_and_of_the_size_it_claims() -> None:
    assert block() == block()
    assert len(block()) == BLOCK_BYTES
    assert block().count(b"\x1b[") > 10_000


def test_a_run_leaves_its_samples_and_a_plot_where_it_was_told_to(tmp_path: Path) -> None:
    write_results(str(tmp_path / "made"), MACHINE, [SPEED])
    made = json.loads((tmp_path / "made" / "results.json").read_text())
    assert made["rows"][0]["values"] == SPEED.values
    ElementTree.fromstring((tmp_path / "made" / "results.svg").read_text())
    rules = (Path(__file__).parents[2] / "Makefile").read_text()
    assert "python -m bench --into build/bench\n" in rules
