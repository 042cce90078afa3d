"""The ssh gateway: any ssh client becomes an operator, `ssh SESSION@gateway`. See docs/ssh.md.

It is a client, not a part of a host: for each ssh channel it runs the ordinary `hold attach` or
`hold exec` as a child process, as the actor that the ssh key is authorized for, and passes bytes
both ways. So authority, turn, journal and attribution are the host's, as for every other operator,
and no session is lost with a gateway. It has no authority of its own, no passwords, no forwarding
and no file transfer. End-to-end encryption ends at it: it can read and type.

    __main__.py    start and end: options, signals, listening
    host_key.py    the gateway's own key, made once
    authorized.py  which ssh key acts as which actor: the file, and what may be in it
    gateway.py     the connections and their limits; disconnects removed keys
    login.py       one ssh connection: authentication, channels, flow control
    channel.py     one ssh channel: between the client and a child
    child.py       the `hold` process behind a channel, on its own terminal or on pipes

Only code that serves imports asyncssh.
"""
