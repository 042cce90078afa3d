"""The `hold` command. Each verb is a module of its own in `holdfast.cli.verbs`, with

    SUMMARY                  one line for the list of verbs
    def parser()             its options and help (cli.arguments makes them alike)
    def run(options)         what it does; gives the exit status, None being 0

and is imported only when it is used, because start-up time is part of every command. Beside them:

    dispatch.py, arguments.py, completion_script.py   from the command line to the verb
    attach/              `hold attach`, a terminal on a session
    text/                what people read, and how it is made safe to print
    journal/             a journal from the host or from its files; `hold export`
    session_address.py   MACHINE/NAME and ID@RELAY-URL
    scope_options.py     where an envelope counts
    decision_options.py  approving and denying
    first_link.py        what `hold up` prints when the host is up
    start_host.py        a host, started if none runs
    host_check.py        what keeps a host that is up from its work
    hung_daemon.py       a daemon that does not answer
"""

from __future__ import annotations

from holdfast.cli.dispatch import main

__all__ = ["main"]
