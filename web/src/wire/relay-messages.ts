// What an operator and a relay say to each other (docs/relay.md).

import { concat, domain, u64, utf8 } from './bytes'
import { violation } from './errors'
import { pack, unpackMap } from './msgpack'
import { bytes, float, int, or, record, text, type Value } from './schema'

export const RELAY_VERSION = 1
const NONE = new Uint8Array(0)

export const FROM_RELAY = {
  greeted: record({
    version: int,
    frame_max_bytes: int,
    stream_window_bytes: int,
    broadcast_window_bytes: int,
  }),
  opened: record({
    id: int,
    stream: int,
    host: bytes,
    epoch: int,
    static: bytes,
    binding: bytes,
    session_key: or(bytes, NONE),
    vouched: or(bytes, NONE),
  }),
  data: record({ stream: int, data: bytes }),
  credit: record({ stream: int, size: int }),
  closed: record({ stream: int, why: text }),
  subscribed: record({ id: int, epoch: int }),
  broadcast: record({ session: text, seq: int, data: bytes }),
  gap: record({ session: text, first: int, last: int }),
  gone: record({ session: text, why: text }),
  failed: record({
    id: int,
    code: text,
    message: text,
    hint: or(text, ''),
    retry_after_s: or(float, 0),
  }),
  going_away: record({ within_s: float }),
} as const

type Table = typeof FROM_RELAY
export type FromRelay = { [T in keyof Table]: { t: T } & Value<Table[T]> }[keyof Table]

/** One WebSocket message of a relay. */
export function decodeFromRelay(body: Uint8Array): FromRelay {
  const fields = unpackMap(body)
  if (!Object.hasOwn(FROM_RELAY, fields.t)) throw violation(`a relay does not say ${fields.t} to an operator`)
  const read = FROM_RELAY[fields.t as keyof Table].read(fields, fields.t) as FromRelay
  read.t = fields.t as never
  return read
}

export interface ToRelay {
  greet: { versions: number[] }
  open: { id: number; host: Uint8Array; session: string | null }
  data: { stream: number; data: Uint8Array }
  close: { stream: number }
  subscribe: { id: number; session: string }
  unsubscribe: { session: string }
}

export function encodeToRelay<T extends keyof ToRelay>(tag: T, fields: ToRelay[T]): Uint8Array {
  return pack({ t: tag, ...fields })
}

const SESSION_DOMAIN = domain('holdfast relay session v1')

/** What a session's key signs to say which host has it, in which epoch. */
export function sessionText(session: string, host: Uint8Array, epoch: number): Uint8Array {
  return concat(SESSION_DOMAIN, utf8(session), host, u64(epoch))
}
