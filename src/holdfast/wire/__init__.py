"""The protocol, without I/O: messages, their frames, their meaning (docs/protocol.md), and the
end-to-end channel they go through when a relay is in between (docs/channel.md). Tests keep both
documents in step. The caller passes time, random bytes and private keys.

Messages:

    messages/               all messages, by subject
    frames.py               messages to bytes and back
    request_classes.py      which requests must be signed, and which are about a session
    terminal_queries.py     queries in the output, which only one terminal may answer
    ed25519.py              checks signatures; loads the library when first used
    coordination.py         values at the coordination point: lease records
    relay_messages.py       between hosts, operators and a relay (docs/relay.md)
    relay_peer_messages.py  between the relays of one cluster

The channel, from the bottom up. It needs that library at once, so nothing above imports it:

    key_agreement.py        X25519 and AES-GCM, and a device's two keys from one secret
    noise.py                the handshake: IK, IKpsk1
    heartbeat.py            detects records that are held back
    record_layer.py         sealed records in strict order, with new keys, ends and heartbeats
    epochs.py               which incarnation may act, for the host and for everybody else
    signed_input.py         one signed input, and the chain of them
    input_chain.py          the stream of a client's inputs, at both ends
    output_broadcast.py     output for many readers, the host's end
    output_listener.py      output as one reader receives it
    stream_opening.py       the first bytes of a stream: which channel follows
    host_link.py            what two hosts say in a channel between them, and its ticket
    channel.py              operator's and host's end of a channel, put together

What an operator presents to be admitted (docs/grants.md):

    grants.py               chains of grants and lists of revocations, to bytes and back
    invites.py              the link of an invite, and the secrets made from its code
    base64url.py            bytes as text for links and headers
"""
