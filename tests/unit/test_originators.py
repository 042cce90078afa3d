"""The book of who is behind a shell's state: core.gate.originators."""

from __future__ import annotations

from typing import Any

from holdfast.core.gate import originators
from holdfast.core.gate.originators import KeptOrigins, Origin, OriginatorBook
from holdfast.model.shell_state import ShellState

ANN, BOT = Origin(1, ("ann",)), Origin(2, ("bot",))


def state(number: int = 1, **more: Any) -> ShellState:
    whole: dict[str, Any] = {
        "kind": "bash",
        "number": number,
        "serial": number,
        "cwd": "/",
        "umask": "0022",
        "exported": {"PATH": "/usr/bin:/bin"},
        "variables": {},
        "aliases": {},
        "functions": {},
        "options": (),
        "traps": {},
        "jobs": {},
        "hashed": {},
    }
    return ShellState(**{**whole, **more})


def nowhere(program: str, file: str) -> bool:
    return False


def begun(**more: Any) -> OriginatorBook:
    book = OriginatorBook()
    book.take(state(**more), None, nowhere)
    return book


def test_the_first_state_is_nobodys() -> None:
    book = begun(aliases={"ll": "ls -l"})
    assert book.origin("alias:ll") is None and book.origin("cwd") is None
    assert book.is_set("alias:ll") and not book.is_set("alias:df")


def test_what_a_command_changed_is_of_those_behind_it() -> None:
    book = begun()
    after = state(2, cwd="/tmp", aliases={"df": "x"}, exported={"PATH": "/evil:/usr/bin:/bin"})
    taken = book.take(after, BOT, nowhere)
    assert taken.keys == ("alias:df", "cwd", "path:/evil", "var:PATH")
    assert {book.origin(key) for key in taken.keys} == {BOT}
    assert book.origin("path:/bin") is None


def test_what_has_its_first_value_again_is_nobodys_and_what_is_gone_is_somebodys() -> None:
    book = begun(private={"DIR": "#1"})
    book.take(state(2, private={"DIR": "#2"}, aliases={"df": "x"}), BOT, nowhere)
    book.take(state(3, private={"DIR": "#1"}), BOT, nowhere)
    assert book.origin("var:DIR") is None and book.origin("alias:df") is None
    book.take(state(4), BOT, nowhere)
    assert book.origin("var:DIR") == BOT and not book.is_set("var:DIR")


def test_who_takes_away_what_another_one_set_is_behind_its_absence() -> None:
    book = begun(private={"DIR": "#1"})
    book.take(state(2, private={"DIR": "#2"}, functions={"cp": "#1"}), ANN, nowhere)
    book.take(state(3, private={"DIR": "#3"}, functions={"cp": "#2"}), BOT, nowhere)
    book = OriginatorBook(KeptOrigins.unpack(book.kept().pack()))
    book.take(state(4, private={"DIR": "#1"}), BOT, nowhere)
    assert book.origin("func:cp") == BOT and not book.is_set("func:cp")
    assert book.origin("var:DIR") == BOT
    book.take(state(5, private={"DIR": "#1"}, functions={"cp": "#1"}), ANN, nowhere)
    assert book.origin("func:cp") == ANN


def test_the_same_value_again_moves_nothing() -> None:
    book = begun()
    book.take(state(2, private={"DIR": "#2"}), BOT, nowhere)
    book.take(state(3, private={"DIR": "#2"}), ANN, nowhere)
    assert book.origin("var:DIR") == BOT


def test_a_program_remembered_where_path_finds_it_has_no_originator_of_its_own() -> None:
    book = begun()
    after = state(2, remembered={"id": "/usr/bin/id", "uname": "/usr/bin/id"})
    book.take(after, BOT, lambda program, file: file == f"/usr/bin/{program}")
    assert book.origin("hash:id") is None and book.origin("hash:uname") == BOT


def test_a_body_that_was_not_told_may_be_of_all_that_came_between() -> None:
    book = begun(functions={"greet": "#1"})
    book.take(state(2, functions={"greet": ""}), BOT, nowhere)
    assert book.origin("func:greet") is None
    book.take(state(3, functions={"greet": "#2"}), Origin(2, ("ann",)), nowhere)
    origin = book.origin("func:greet")
    assert origin is not None and set(origin.actors) == {"ann", "bot"}
    book.take(state(4, functions={"greet": "#3"}), Origin(3, ("ann",)), nowhere)
    assert book.origin("func:greet") == Origin(3, ("ann",))


def test_beyond_the_bound_the_oldest_are_forgotten_and_then_everything_may_be_theirs() -> None:
    book = begun()
    book.take(state(2, private={"OLD": "#1"}), BOT, nowhere)
    many = {f"V{n}": "#1" for n in range(originators.ENTRIES_MAX)}
    book.take(state(3, private={"OLD": "#1", **many}), ANN, nowhere)
    assert len(book.entries) == originators.ENTRIES_MAX
    for key in ("var:OLD", "var:NEVER", "cwd"):
        assert book.origin(key) == Origin(0, ("bot",))


def test_what_nobody_saw_is_of_all_that_may_have_done_it() -> None:
    book = begun()
    book.take(state(2, private={"DIR": "#1"}), BOT, nowhere)
    book.not_seen(("ann", "cid"))
    assert book.origin("var:HOME") == Origin(0, ("ann", "cid"))
    assert book.origin("var:DIR") == Origin(2, ("ann", "cid", "bot"))


def test_one_that_adopts_answers_alone() -> None:
    book = begun()
    book.take(state(2, private={"DIR": "#1"}), Origin(2, ("bot", "cid")), nowhere)
    book.adopt("var:DIR", "ann")
    assert book.origin("var:DIR") == Origin(2, ("ann",), adopted=True)
    book.take(state(3, private={"DIR": "#9"}), BOT, nowhere)
    assert book.origin("var:DIR") == BOT


def test_another_daemon_reads_the_same_book() -> None:
    book = begun()
    book.take(state(2, private={"DIR": "#1"}, functions={"f": ""}), BOT, nowhere)
    book.forget(("cid",))
    again = OriginatorBook(KeptOrigins.unpack(book.kept().pack()))
    assert again.kept() == book.kept() and again.number == 2
    again.take(state(3, private={"DIR": "#1", "NEW": "#2"}), ANN, nowhere)
    assert again.origin("var:DIR") == BOT and again.origin("var:NEW") == ANN
