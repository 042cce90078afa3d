"""`--require`, of the verbs that choose another host."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser
from holdfast.model.host_requirement import HostRequirement


def add_requirements(parser: Parser) -> None:
    parser.add_values(
        "--require",
        "FACT=VALUE",
        "only to a host with this label, isa, kernel or criu (at least), or free memory; may be "
        "given several times: --require label=gpu --require memory=8G",
    )


def requirements(options: Options) -> tuple[HostRequirement, ...]:
    """Raises InvalidArgument for one that is none."""
    return tuple(HostRequirement.parse(each) for each in options.require)
