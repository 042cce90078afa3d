"""The gate of one host: what is judged before it commits, and who is behind it.

provenance.py           who is behind the shell's state, its commands, and a line at its prompt
command_book.py         the commands of one session, each with everybody that had a part in it
file_originators.py     who wrote which file, as far as the kernel said
why.py                  who is behind a process, port, file, variable, line: the chain of commands
provenance_requests.py  requests for that
"""
