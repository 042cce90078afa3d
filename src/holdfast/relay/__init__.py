"""The relay: the rendezvous that hosts and operators dial. It routes; it owns nothing, decides
nothing about sessions, and cannot read what it carries. docs/relay.md describes its protocol.

    host        a machine that dialled in and proved its Ed25519 key
    operator    a client that dialled in; only hosts learn which actor it is, end to end
    end         one of the two, as the other half of a connection
    session     announced by the host that has it, with its epoch, signed by the session's own key
    incarnation one epoch of a session at one host; only the highest epoch known is routed
    floor       that highest epoch, remembered while no host here has the session
    stream      a numbered two-way pipe between one operator and one host, with credit each way
    broadcast   sent once by a host, delivered to every subscriber or reported as a gap
    admission   a host's statement that the operator at a stream may subscribe to a session
    outbox      what waits for one end that reads too slowly: bounded, in two lanes
    link        how operators of one relay reach hosts of another, until a message is lost
    peer        another relay of the cluster
    draining    about to stop: no new connections, and clients are told to use another relay

The files:

    __main__.py          start: options, event loop, signals
    options.py           the command line
    server.py            one port: HTTP, WebSockets, TLS; limits sockets before they send anything
    web_app.py           the web app's files, with the headers that isolate its page
    port_view_origin.py  a second origin, for pages that come from ports of sessions
    web/                 the web app's build, made by scripts/web-build
    privileges.py        dropping root once everything is open
    program_mounts.py    program files in root's home, readable by the user it becomes
    certificate.py       a self-signed certificate for a LAN, and its fingerprint
    limits.py            the limits of this relay: those of model.limits, or given at the start
    rendezvous.py        the state: ends, incarnations, streams; admission of connections
    websocket.py         one WebSocket: messages in with a deadline, an outbox out
    outbox.py            see above
    server_frame.py      a message as one WebSocket frame
    host_end.py          messages from a host
    operator_end.py      messages from an operator
    streams.py           streams and their credit
    subscriptions.py     incarnations, subscriptions, fan-out
    epoch_floors.py      the epoch rule, behind a port so that several relays can share it
    shared_state.py      what is shared, by the options: a file, or NATS
    cluster.py           the other relays: which are alive, which has what, links to them
    peer_link.py         one link between two relays, over a bus that may lose messages
    peer_hosts.py        hosts of another relay, for operators of this one
    peer_operators.py    operators of another relay, at hosts of this one
    address_rate.py      rates per address
    metrics.py           counters, in the format of Prometheus
    host_metrics.py      those of the host whose own relay it is, asked of its daemon
"""
