"""What a seizure or a halt found, in plain words; `hold seize` and `hold halt` print it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from holdfast.cli.arguments import print_json
from holdfast.cli.session_address import address_from_here
from holdfast.cli.text.naming import called, has
from holdfast.cli.text.table import ago, counted
from holdfast.cli.text.unrecorded import tell_unrecorded
from holdfast.model.errors import HaltFailed
from holdfast.model.turn_info import Receipt

_PIDS_NAMED = 10  # of what still runs


def tell(receipt: Receipt, session: str, *, you: str, seized: bool, as_json: bool) -> None:
    """Print it for the actor with the name `you`. Raises HaltFailed when a halt was asked for and
    the kernel did not confirm it."""
    if as_json:
        print_json(receipt.pack())
    else:
        print(*_lines(receipt, session, you, seized), sep="\n")
    tell_unrecorded(receipt.unrecorded)
    if receipt.scope and not receipt.frozen:
        again = f"`hold halt {address_from_here(session)}`"
        raise HaltFailed(
            f"the kernel did not confirm that {session} is frozen",
            hint=f"input is refused all the same; {again} asks again",
        )


def _lines(receipt: Receipt, session: str, you: str, seized: bool) -> Iterator[str]:
    before = called(receipt.before, you)
    if seized:
        yield f"the turn is yours; {before} had it{' already' * (before == 'you')}"
    else:
        yield f"{before} {has(before)} the turn"
    yield f"last input taken: {_last_input(receipt, you)}"
    yield (
        f"before it: journal records up to {receipt.journal_seq}, "
        f"{counted(receipt.output_offset, 'byte')} of output"
    )
    if receipt.scope:
        yield _halted(receipt, session)
        if receipt.caught:
            yield f"had left the session's group and was caught: {_pids(receipt.caught)}"
        if receipt.running:
            yield f"could not be stopped: {_pids(receipt.running)}"
        yield f"note: {receipt.caveat}"
        yield f"`hold resume {address_from_here(session)}` resumes it"
    if seized:
        giving_up = f"hold turn {address_from_here(session)} yield"
        yield f"`{giving_up}` gives the turn up; no policy moves it meanwhile"


def _last_input(receipt: Receipt, you: str) -> str:
    if receipt.last_input_at is None:
        return "none that this daemon saw"
    at = time.strftime("%H:%M:%S", time.localtime(receipt.last_input_at))
    by = called(receipt.last_input_by, you, nobody="the host")
    return f"by {by} at {at}, {ago(receipt.at - receipt.last_input_at)} before"


def _halted(receipt: Receipt, session: str) -> str:
    what = session if receipt.scope == "session" else f"what {receipt.scope} started in {session}"
    tasks = counted(receipt.tasks, "task")
    if receipt.frozen:
        return (
            f"halted: {what}; the kernel confirms {tasks} frozen, in {receipt.seconds * 1e3:.1f} ms"
        )
    return f"NOT confirmed: {what}; {tasks} seen within {receipt.seconds * 1e3:.0f} ms"


def _pids(pids: tuple[int, ...]) -> str:
    shown = ", ".join(str(pid) for pid in pids[:_PIDS_NAMED])
    more = len(pids) - _PIDS_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
