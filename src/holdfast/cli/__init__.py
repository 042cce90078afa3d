"""The `hold` command. Each verb is a module of its own in `holdfast.cli.verbs`, with

    SUMMARY                  one line for the list of verbs
    def parser()             its options and help (cli.arguments makes them alike)
    def run(options) -> int  what it does; gives the exit status

and is imported only when it is used, because start-up time is part of every command.
"""

from __future__ import annotations

from holdfast.cli.dispatch import main

__all__ = ["main"]
