"""The relay: the meeting point that hosts and operators dial. It routes; it owns nothing, decides
nothing about sessions, and reads nothing of what it carries. docs/relay.md is its protocol.

    host        a machine that dialled in and proved its Ed25519 key
    operator    a client that dialled in; who it is, only hosts learn, end to end
    end         one of the two, as the other half of a connection
    session     announced by the host that has it, with its epoch, signed by the session's own key
    incarnation one epoch of a session at one host; only the highest epoch known is routed
    floor       that highest epoch, remembered when nobody here has the session
    stream      a numbered two-way pipe between one operator and one host, with credit each way
    broadcast   what a host sends once and every subscriber gets, or is told the gap of
    admission   a host's word that the operator at a stream may subscribe to a session
    outbox      what waits for one end that does not read fast enough: bounded, in two lanes
    link        how operators of one relay reach hosts of another, for as long as nothing is lost
    far         at another relay
    draining    about to end: nobody new is taken, everybody is told to go elsewhere

The files:

    __main__.py     start: options, event loop, signals
    options.py      the command line
    server.py       one port: HTTP, WebSockets, TLS; sockets bounded before they say anything
    web_app.py      the web app's files, and the headers that keep its page to itself
    port_view_origin.py  another origin, for pages that come from ports of sessions
    web/            its build, made by scripts/web-build
    privileges.py   giving up root once everything is open
    certificate.py  a certificate for a LAN, and its fingerprint
    limits.py       the limits of this relay: those of model.limits, or given at the start
    rendezvous.py        what there is: ends, incarnations, streams; who may come in
    websocket.py   one WebSocket: messages in with a deadline, an outbox out
    outbox.py       see above             server_frame.py      a message as one WebSocket frame
    host_end.py        what a host says      operator_end.py    what an operator says
    streams.py      streams and their credit
    subscriptions.py     incarnations, subscriptions, fan-out
    epoch_floors.py       the epoch rule, behind a port so that several relays can share it
    shared_state.py      what is shared, as the options say: a file, or NATS
    cluster.py      the other relays: who is there, who has what, links to them
    peer_link.py         one link between two relays, over a bus that may lose messages
    peer_hosts.py    hosts of another relay, for operators of this one
    peer_operators.py    operators of another relay, at hosts of this one
    address_rate.py        rates per address
    metrics.py      counts, as Prometheus reads them
"""
