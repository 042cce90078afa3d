"""The gate, as far as it is decided without I/O: an effect is judged before it commits.

commit_bytes.py     where an input begins to commit something
gated_input.py      one input that was cut there, and how far it has come
approvals.py        effects that wait until enough others approve
effect_facts.py     an effect -> the facts that policies judge
nested_commands.py  commands that run other commands: sudo, bash -c, find -exec, ssh ...
destructive.py      what destroys
written_paths.py    which paths a command writes
network_names.py    which hosts a command names
patterns.py         patterns of rules, and commands that could match one
verdicts.py         which scopes count, and which of several verdicts
file_globs.py       which paths a declared glob means
action_effects.py   two looks at a session -> what an action did; against what it declared
action_score.py     one action -> its score; many -> an actor's record
originators.py      who is behind each piece of a shell's state
line_reading.py     what a command line may use of that state
authority_meet.py   an effect has the authority that all of its contributors have
"""
