"""`hold mcp`: sessions for AI agents, over the Model Context Protocol. The agent is an operator
with its own key and envelope, like a person at a terminal: it sees what it may see, writes while it
holds the turn, and is told in plain words when it may not. Nothing here grants anything.

    server.py      which tools and resources there are, and how an agent is told to behave
    agent_desk.py        the agent's place: its connection, the sessions it may name, its commands
    read_tools.py     tools that only look
    write_tools.py      tools that write
    command.py     a command line that was submitted
    turn_tools.py     tools about the turn
    refusing.py    what the host refuses, as an answer an agent can act on
    bounding.py    text cut to what a model can read
    resources.py   screen and journal as resources
    recorded.py    where a session's journal ends
    changes.py     telling subscribers that one of them changed
    serving.py     over standard input and output (pipes.py), or HTTP
"""
