"""The machine that guesses what a key will show (holdfast.sdk.prediction.machine)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.sdk.prediction.machine import (
    BACK,
    GRACE_S,
    KEYS_MAX,
    LEFT,
    OTHER,
    PASTE_BYTES,
    RIGHT,
    keys_in,
)
from unit import prediction_vectors
from unit.predicted import COLS, Far, line, trusted

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_first_character_is_not_drawn_and_the_next_is_once_it_has_come_back() -> None:
    far = Far().type("l")
    assert far.drawn is None
    far.type("s")
    assert far.drawn is None
    far.print("$ l")
    assert far.drawn == "$ ls|"
    far.print("$ ls")
    assert far.drawn is None
    assert far.type(" -a").drawn == "$ ls -a|"


def test_backspace_and_arrows_are_foreseen_within_what_was_typed() -> None:
    far = trusted().type("sx")
    assert far.type(BACK).drawn == "$ ls|"
    assert far.type(LEFT).drawn == "$ l|s"
    assert far.type("a").drawn == "$ la|s"
    assert far.type(RIGHT).type("!").drawn == "$ las!|"
    for shown in ("$ ls", "$ lsx", "$ ls"):
        far.print(shown)
    assert far.drawn == "$ las!|"
    far.print(line("$ ls", 3)).print(line("$ las", 4)).print("$ las").print("$ las!")
    assert far.drawn is None
    assert far.guess.wake_at() is None


def test_backspace_does_not_reach_into_the_prompt() -> None:
    far = trusted().type(BACK)
    assert far.drawn == "$ |"
    assert far.type(BACK).drawn == "$ |", "the second one would"
    assert far.type("x").drawn == "$ |", "and nothing after it is foreseen"


def test_nothing_typed_after_enter_is_drawn_before_its_answer_and_an_echo() -> None:
    far = trusted().type("s\r").type("hunter2")
    assert far.drawn == "$ ls|"
    far.accept()
    far.print("$ ls")
    assert far.drawn is None
    far.print(line("Password: ", row=1))
    assert far.drawn is None
    assert far.type("more").drawn is None
    assert far.wait(5 * GRACE_S).drawn is None


def test_what_was_typed_ahead_earns_no_trust_even_if_it_seems_to_come_back() -> None:
    far = trusted().type("\r").type("h").type("unter2")
    far.accept(far.seq - 2)
    far.print(line("", row=1))  # the answer to Enter
    far.print(line("h", row=1))  # a prompt that begins like the password
    assert far.drawn is None


def test_what_was_printed_before_enter_arrived_is_not_its_answer() -> None:
    far = trusted().type("\r").print(line("late", row=1)).accept()
    far.type("h").type("unter2").print(line("lateh", row=1))
    assert far.drawn is None, "typed ahead: the answer to Enter is still to come"


def test_a_key_after_enter_earns_trust_once_the_answer_to_enter_is_here() -> None:
    far = trusted().type("\r").accept().print(line("$ ", row=1))
    assert far.type("p").drawn is None
    assert far.type("w").print(line("$ p", row=1)).drawn == "$ pw|"


@pytest.mark.parametrize("mask", [*" *.#xX", "\u00b7"])
def test_characters_shown_in_place_of_others_earn_no_trust(mask: str) -> None:
    far = Far("Password: ").type(mask).print(line("Password: " + mask, 11))
    assert far.type("secret").drawn is None


def test_stars_in_place_of_letters_are_no_echo() -> None:
    far = Far("Password: ")
    for count, letter in enumerate("hunter2", 1):
        far.type(letter).accept().print("Password: " + "*" * count)
        assert far.drawn is None


def test_a_character_that_does_not_come_back_is_taken_away_in_time() -> None:
    far = trusted().type("s")
    assert far.drawn == "$ ls|"
    assert far.wait(10).drawn == "$ ls|", "the host does not have it yet"
    far.accept()
    assert far.guess.wake_at() == far.now + GRACE_S
    assert far.wait(GRACE_S / 2).drawn == "$ ls|"
    assert far.wait(GRACE_S / 2).drawn is None
    assert far.type("e").drawn is None, "and the trust with it"
    assert far.guess.wake_at() is None


def test_output_that_was_not_foreseen_takes_the_trust_away() -> None:
    far = trusted().type("s").print(line("new mail", row=3))
    assert far.drawn is None
    far = trusted().print(line("Password: ", row=0))  # with nothing in flight
    assert far.type("hunter2").drawn is None


def test_output_elsewhere_leaves_the_guess_alone() -> None:
    far = trusted().type("s").print(line("$ l      12:00", 3))
    assert far.drawn == "$ ls|     12:00", "what is behind a gap does not move"
    assert far.type(BACK).drawn is None


def test_a_wrong_guess_is_followed_by_right_ones_only_after_an_echo() -> None:
    far = trusted().type("q").accept().print("$ lQ")
    assert far.drawn is None
    far.wait(2 * GRACE_S)
    assert far.type("a").drawn is None
    assert far.print("$ lQa").type("b").drawn == "$ lQab|"


def test_several_echoes_at_once_are_taken_together() -> None:
    far = trusted()
    for letter in "s -la":
        far.type(letter)
    assert far.print("$ ls -").drawn == "$ ls -la|"
    assert far.print("$ ls -la").drawn is None


def test_keys_that_undo_one_another_come_to_nothing_without_harm() -> None:
    far = trusted().type("s").type(BACK)
    assert far.drawn is None
    far.accept().wait(GRACE_S)
    assert far.type("s").drawn == "$ ls|", "the trust is still there"


def test_a_character_in_the_middle_moves_the_rest_on() -> None:
    far = trusted().type("s").print("$ ls").type(LEFT).print(line("$ ls", 3))
    assert far.type("a").drawn == "$ la|s"
    assert far.print(line("$ las", 4)).drawn is None


def test_a_program_that_offers_an_ending_teaches_not_to_move_it() -> None:
    far = Far().type("l").print(line("$ ls -la", 3))
    assert far.type("s").drawn == "$ ls| -la"
    assert far.print(line("$ ls -la", 4)).type(" ").drawn == "$ ls |-la"


def test_the_last_column_is_never_reached() -> None:
    start = "$ " + "x" * (COLS - 5)
    far = trusted(start).type("ab")
    assert far.drawn == start + "la|"
    full = line("$ " + "x" * (COLS - 2), 5)
    far = Far().print(full).type("a")
    far.print(full)
    assert far.drawn is None


@pytest.mark.parametrize("text", ["漢", "é\u0301", "\t", "\x1b[A", "\x1b", "\r", "\x03", "x" * 65])
def test_what_cannot_be_foreseen_ends_it(text: str) -> None:
    assert trusted().type("s").type(text).type("more").drawn in ("$ ls|", "$ lsé|")


def test_letters_of_other_alphabets_are_foreseen_if_they_are_narrow() -> None:
    assert trusted().type("äßçΩжђ").drawn == "$ läßçΩжђ|"


def test_beside_a_wide_character_nothing_is_guessed() -> None:
    far = Far().type("l").print(line("$ l \0\0", 3))
    assert far.type("s").drawn is None


def test_on_a_line_that_is_not_plain_nothing_is_guessed_or_remembered() -> None:
    far = trusted().type("s").print(line("$ l", plain=False))
    assert far.drawn is None
    far.type("q").print("$ l")
    assert far.type("s").drawn is None


def test_a_secret_or_a_blind_turn_takes_all_away_until_an_echo_after_it() -> None:
    far = trusted().type("s")
    far.guess.withhold(True)
    assert far.drawn is None and not far.guess.looks
    assert far.type("hunter2").print("$ lh").drawn is None
    far.guess.withhold(False)
    assert far.drawn is None
    assert far.type("a").drawn is None
    assert far.print("$ lha").type("b").drawn == "$ lhab|"


def test_who_is_too_far_ahead_is_not_followed() -> None:
    far = trusted()
    for _ in range(KEYS_MAX + 1):
        far.type("a")
    assert far.drawn is None and not far.guess.looks


def test_nothing_has_to_be_looked_at_while_nothing_is_typed() -> None:
    far = Far()
    assert not far.guess.looks
    far.type("l")
    assert far.guess.looks
    assert far.accept().wait(GRACE_S).guess.looks is False


def test_keys_are_told_apart() -> None:
    assert keys_in(b"a\x7f\x08\x1b[D\x1bOC\r\xc3\xa4") == [
        "a",
        *(BACK * 2),
        LEFT,
        RIGHT,
        OTHER,
        "ä",
    ]
    assert keys_in(b"a\x1b[200~text") == ["a", OTHER], "a sequence is not its letters"
    assert keys_in(b"\xc3") == [OTHER]
    assert keys_in(b"x" * (PASTE_BYTES + 1)) == [OTHER]


def test_the_vectors_are_what_the_machine_does_today() -> None:
    """The machine in TypeScript is held to the same file."""
    kept = (DOCS / "prediction-vectors.json").read_text(encoding="utf-8")
    assert kept == prediction_vectors.text()
    steps = [step for case in json.loads(kept)["cases"] for step in case["steps"]]
    assert sum(step["overlay"] is not None for step in steps) > 100, "they show something"
