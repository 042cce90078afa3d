// Limits of the protocol that a client meets, as docs/protocol.md and docs/channel.md name them.

export const FRAME_MAX_BYTES = 1 << 20 // a message to a host
export const SNAPSHOT_MAX_BYTES = 16 << 20 // a message from a host
export const INPUT_MAX_BYTES = 64 << 10 // one input
export const TURN_TEXT_MAX_CHARS = 200

export const CHANNEL_REKEY_RECORDS = 65536
export const CHANNEL_REKEY_BYTES = 64 << 20
export const CHANNEL_BEAT_S = 5
export const CHANNEL_PATIENCE_S = 15
export const CHANNEL_RENEW_S = 3600
export const CHANNEL_GRANT_MAX_BYTES = 16 << 10
export const OUTPUT_UNSIGNED_FRAMES = 64

export const GRANT_LINKS_MAX = 6
export const GRANT_LINK_MAX_BYTES = 1024
export const GRANT_CHAIN_MAX_BYTES = 4096
export const INVITE_LINK_MAX_CHARS = 512

export const FORWARD_PIECE_BYTES = 16 << 10 // one message of data of a connection to a port
export const FORWARD_WINDOW_BYTES = 256 << 10 // of one connection, one way, not yet taken
