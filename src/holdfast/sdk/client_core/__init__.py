"""What every client of a host does, written once: for the asyncio SDK, for `hold`, for forwarding.

    client_io.py       the port: what this needs of a connection and a clock
    client_machine.py  connect again, ask again, send an input again
    retry_policy.py    how long, how often, how fast: all the times
    event_reader.py    events of one session or of all, and waiting for a state
    output_reader.py   a session's output by offset
    exec_reader.py     one command line, followed to its end
    text_wait.py       until a text is printed or shown
    turn_wait.py       until the turn is ours
    unacked_inputs.py  what was typed and not yet acknowledged

It is written with `async`, and imports neither asyncio nor sockets nor a clock: all waiting happens
in the methods of a `ClientIo`. asyncio's really wait (`sdk/aio/driver.py`). The blocking one's
block and never suspend (`sdk/client.py`), so that a coroutine runs to its end by one
`send(None)`: `finish` does that. A test's answer from a script.
"""
