"""The ssh gateway: any ssh client becomes an operator, `ssh SESSION@gateway`. docs/ssh.md is for
those who run or use one.

It is a client, not a part of a host: for each ssh channel it runs the ordinary `hold attach` or
`hold exec` as a child process, as the actor that the ssh key stands for, and passes bytes both
ways. So authority, turn, journal and attribution are the host's, as for every other operator, and a
gateway that dies takes nothing with it. It has no authority of its own, no passwords, no forwarding
and no file transfer. End-to-end protection ends at it: it reads and could type.

    __main__.py    start and end: options, signals, listening
    host_key.py    the gateway's own key, made once
    authorized.py  which ssh key acts as which actor: the file, and what may be in it
    gateway.py     who is connected and how many may be; keys that are let in no longer
    login.py       one ssh connection: its proof, its channels, and that it reads
    channel.py     one ssh channel: between the client and a child
    child.py       the `hold` process behind a channel, on a terminal of its own or on pipes

asyncssh is imported by whoever serves, and by nobody else.
"""
