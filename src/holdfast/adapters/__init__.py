"""What touches the system, one technology per folder or file. An adapter decides nothing about
sessions.

    session_memory/  a session's memory in the keeper's custody: output, inputs taken, keys not
                     yet in the journal
    journal_files/   the journal's files: reading, writing, the disk reserve
    launch/          starting a session's processes
    halt/            freezing a tree, or stopping it process by process
    proc/            what the kernel knows of a session's processes
    shell/           shell integration: starting shells, their reports, their state
    ghostty/         screens, by libghostty-vt
    captured_files/  files copied with a checkpoint, and put back
    criu/            finding or installing a CRIU that works here
    sqlite/, nats/   the coordination point, and the bus between relays; memory/ has their twins
    pty.py           terminals
    cedar/           policies of the gate, and their rules in TOML
    bash_grammar/    reading command lines
    webhook/         a policy that a service decides
    real_paths.py    where paths really are
    signing.py       the host's Ed25519 keys
    key_file.py      secrets in files of their own
    blobs/           places for named blobs: a directory, a bucket
    atomic_file.py   files replaced atomically
    disk_reserve.py  room on disk for the next version of a file
    compiled.py      the native programs, compiled on this machine
    log_lines.py     log lines, so many per place in the code
    lan_address.py   this machine's address in the local network
"""
