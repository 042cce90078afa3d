"""Which paths a declared glob means."""

from __future__ import annotations

import time

import pytest

from holdfast.core.gate.file_globs import Glob, absolute, fixed_part, reaches_down


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/b", "/a/b/"),
        ("/a/*", "/a/b.c"),
        ("/a/*.c", "/a/.c"),
        ("/a/?.c", "/a/b.c"),
        ("/a/[a-c].c", "/a/b.c"),
        ("/a/[!x]", "/a/b"),
        ("/a/[^x]", "/a/b"),
        ("/a/x[", "/a/x["),
        ("/a/**", "/a/b/c/d"),
        ("/a/**", "/a"),
        ("/a/**/d", "/a/d"),
        ("/a/**/d", "/a/b/c/d"),
        ("/**/x*y/*", "/1/2/xay/3"),
        ("/a/**/b/**/c", "/a/b/x/b/c"),
        ("/a/b.c", "/a/b.c"),
    ],
)
def test_a_glob_means_these(glob: str, path: str) -> None:
    assert Glob(glob).matches(path)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("/a/*", "/a/b/c"),
        ("/a/*", "/a"),
        ("/a/?", "/a/bc"),
        ("/a/[!x]", "/a/x"),
        ("/a/b", "/a/b/c"),
        ("/a/**/d", "/a/b/c"),
        ("/a/b.c", "/a/bxc"),
        ("/a", "/b"),
        ("/a/[z-a]", "/a/m"),
    ],
)
def test_a_glob_does_not_mean_these(glob: str, path: str) -> None:
    assert not Glob(glob).matches(path)


def test_globs_are_relative_to_where_the_command_runs() -> None:
    assert absolute("out/*.o", "/w/src") == "/w/src/out/*.o"
    assert absolute("../x", "/w/src") == "/w/x"
    assert absolute("/etc/./x", "/w") == "/etc/x"
    assert absolute("../../../x", "/w") == "/x"


def test_the_directory_that_holds_all_a_glob_can_mean() -> None:
    assert fixed_part("/a/b/*.c") == "/a/b"
    assert fixed_part("/a/b") == "/a"
    assert fixed_part("/*/b") == "/"
    assert reaches_down("/a/b/**") and reaches_down("/a/*/c")
    assert not reaches_down("/a/*.c") and not reaches_down("/a/b")


def test_no_glob_takes_for_ever() -> None:
    began = time.monotonic()
    assert not Glob("/" + "*a" * 400 + "b").matches("/" + "a" * 255)
    assert not Glob("/**/a" * 100 + "/b").matches("/a" * 400)
    assert time.monotonic() - began < 2
