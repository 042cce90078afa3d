"""The kernel's system call filter with user notification: the exec gate's mechanism.

filter.py            which calls wait for an answer, and which fail
notification.py      taking a call that waits, and answering it
answerer.py          the process that does so, for all sessions of a host
answered_session.py  one session there: what is known, and what has to be asked
gate_messages.py     what the daemon and the answerer say to each other
gate_page.py         the memory of one gate, in its keeper's custody
call_facts.py        what a call is about to do
process_memory.py    its arguments, in the memory of its process
file_lookup.py       which file a path means to that process
file_watch.py        who opens files that others wrote, by fanotify
peer_lookup.py       where it connects or writes to, and who listens there
"""
