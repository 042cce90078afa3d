"""What touches the system, one technology per folder or file. An adapter decides nothing about
sessions.

    session_memory/  a session's memory in the keeper's custody: output, inputs taken, keys that
                     are not in the journal's file yet
    journal_files/   the journal's files: reading, writing, the disk reserve
    launch/          starting a session's processes
    halt/            a tree frozen, or stopped process by process
    proc/            the kernel's word on what a session is and does
    shell/           shells that report: how they are started, their reports, their state
    ghostty/         screens, by libghostty-vt
    criu/            checkpoint and restore
    sqlite/, nats/   the coordination point, and the bus between relays; memory/ has their twins
    pty.py           terminals
    signing.py       keys of ours
    atomic_file.py   files replaced as a whole
    compiled.py      the native programs, compiled on this machine
    lan_address.py   the address by which others in the same network reach this machine
    level.py         the best level here
"""
