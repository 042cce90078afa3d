"""`hold mcp`: sessions for AI agents, over the Model Context Protocol. The agent is an operator
with its own key and envelope, like a person at a terminal: it sees what it may see, writes while it
holds the turn, and gets a readable answer when it may not. Nothing here grants a right.

    server.py      the tools and resources, and the instructions for the agent
    agent_desk.py  the agent's state: its connection, the sessions it may use, its commands
    agent_command.py  one command line that it follows
    read_tools.py  tools that only read
    write_tools.py tools that write
    turn_tools.py  tools about the turn
    gate_tools.py  tools about approvals, and what actions did
    session_tools.py  tools that start and end sessions
    answers.py     what each tool answers, as types: the output schemas
    refusing.py    refusals of the host, as answers an agent can act on
    bounding.py    text cut to what a model can read
    resources.py   screen and journal as resources
    changes.py     notifying subscribers of changes
    serving.py     over standard input and output (pipes.py), or HTTP
"""
