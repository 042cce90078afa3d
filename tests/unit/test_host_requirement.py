"""Which hosts will do, by `--require` (N2)."""

from __future__ import annotations

import pytest

from holdfast.model.errors import InvalidArgument
from holdfast.model.host_requirement import HostRequirement
from holdfast.model.movability import MoveTarget

HOST = MoveTarget(
    "laptop", "x86_64", "6.8.0-31-generic", "4.2.1", labels=("gpu", "rack-7"), memory_free=3 << 30
)


@pytest.mark.requirement("N2")
@pytest.mark.parametrize(
    ("text", "unmet"),
    [
        ("label=gpu", ""),
        ("label=gp", "it has no label gp"),
        ("isa=x86_64", ""),
        ("isa=aarch64", "its instruction set is x86_64"),
        ("kernel=6.8", ""),
        ("kernel=6.8.0", ""),
        ("kernel=6.8.1", "its kernel is 6.8.0-31-generic"),
        ("kernel=6.18", "its kernel is 6.8.0-31-generic"),
        ("kernel=5.19", ""),
        ("criu=4.2", ""),
        ("criu=4.10", "its CRIU is 4.2.1"),
        ("memory=3G", ""),
        ("memory=1.5GiB", ""),
        ("memory=3221225472", ""),
        ("memory=3073M", "it has 3072 MiB of free memory"),
    ],
)
def test_a_host_will_do_or_it_is_said_what_it_is_instead(text: str, unmet: str) -> None:
    assert HostRequirement.parse(text).unmet(HOST) == unmet


def test_a_host_without_criu_meets_no_version_of_it() -> None:
    without = HOST.replace(criu="")
    assert HostRequirement.parse("criu=1").unmet(without) == "it has no CRIU"


@pytest.mark.parametrize(
    "text",
    ["", "gpu", "label", "label=", "colour=red", "memory=much", "memory=-1G", "kernel=new"],
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        HostRequirement.parse(text)
