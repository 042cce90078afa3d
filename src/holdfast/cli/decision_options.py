"""What `hold approve` and `hold deny` take, and what they print."""

from __future__ import annotations

from holdfast.cli.arguments import Options, Parser, print_json
from holdfast.model.approval_info import ApprovalInfo


def add_decision(parser: Parser) -> None:
    parser.add_value("--note", "T", "for people to read; kept with it", default="")
    parser.add_json()
    parser.add_value("id", "ID", "as `hold approvals` shows it, or a beginning of it")


def print_decided(options: Options, approval: ApprovalInfo) -> None:
    """What the decision made of it; more may have to approve."""
    if options.json:
        print_json(approval.pack())
    elif approval.status == "pending":
        have = len(approval.approved_by)
        print(f"{approval.id} is approved by {have} of {approval.quorum}")
    else:
        print(f"{approval.id} is {approval.status}")
