"""The protocol, without I/O: messages, their frames, their meaning (docs/protocol.md), and the
end-to-end channel they go through when a relay is in between (docs/channel.md). Tests keep both
documents in step. Time, random bytes and private keys come in as arguments.

What is said:

    messages/         all messages, by subject
    frames.py         messages to bytes and back
    terminal_queries.py  what in the output asks the terminal something; only one may answer
    ed25519.py        whether a signature is right; loads the library when first asked
    actor_claim.py         how an actor proves at a local connection who it is
    coordination.py   values at the coordination point: records of leases
    relay_messages.py what hosts, operators and a relay say to each other (docs/relay.md)
    relay_peer_messages.py    what several relays say to each other

The channel, from the bottom up. It needs that library at once, so nothing above imports it:

    key_agreement.py           X25519 and AES-GCM
    noise.py          the handshake: IK, IKpsk1
    heartbeat.py       notices what is held back
    record_layer.py         records in strict order, with new keys, ends and heartbeats
    epochs.py        which incarnation may act, for the host and for everybody else
    signed_input.py   one input as evidence, and the chain of them
    input_chain.py  an operator's inputs across channels: none lost unnamed, none doubled
    output_broadcast.py      output for many, the host's end;  output_listener.py  a reader's end
    channel.py        operator's and host's end of a channel, put together

What is shown to be let in (docs/grants.md):

    grants.py         chains of grants and lists of revocations, to bytes and back
    invites.py        the link of an invite, and the secrets made from its code
    base64url.py      bytes as text for links and headers
"""
