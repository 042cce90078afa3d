"""The `hold` command. Each verb is a module of its own in `holdfast.cli.verbs`, with

    SUMMARY                  one line for the list of verbs
    def parser()             its options and help (cli.arguments makes them alike)
    def run(options) -> int  what it does; gives the exit status

and is imported only when it is used, because start-up time is part of every command. Beside them:

    dispatch.py, arguments.py, completing.py    from the command line to the verb
    terminal.py      `hold attach`: a terminal on a session, with prefix_keys.py, rawmode.py,
                     statusline.py, untaken.py, leaving.py, and key_loop.py, the short way of a key
    predicting.py    keys drawn before their echo is here, where the way to the host is long
    turn_desk.py     the turn, as one at a terminal meets it;  await_turn.py  until it is ours
    *_text.py, receipts.py, table.py, harmless.py   what people read, and made safe for them to read
    journal_pages.py, journal_files.py, proof_check.py   a journal from the host, or from its files
    cast.py, provenance.py   `hold export`
    scopes.py        where an envelope counts
    qr.py            a link as a QR code
    ready_link.py    what `hold up` says when the host is up
    starting.py, attaching.py, awaiting.py, resuming.py, raw_output.py, bytes_out.py,
    local_findings.py   pieces that several verbs share
"""

from __future__ import annotations

from holdfast.cli.dispatch import main

__all__ = ["main"]
