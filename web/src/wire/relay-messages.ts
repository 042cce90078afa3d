// Messages between an operator and a relay (docs/relay.md), as bytes and back.

import { concat, domain, u64, utf8 } from './bytes'
import { RELAY_MESSAGES, type ToRelay } from './generated/messages'
import { pack } from './msgpack'
import { decoder, type MessageOf } from './shape'

export type RelayMessage = MessageOf<typeof RELAY_MESSAGES>

/** One WebSocket message of a relay. */
export const decodeRelayMessage = decoder(RELAY_MESSAGES, 'relay')

export function encodeToRelay<T extends keyof ToRelay>(tag: T, fields: ToRelay[T]): Uint8Array {
  return pack({ t: tag, ...fields })
}

const SESSION_DOMAIN = domain('holdfast relay session v1')

/** The bytes that a session's key signs to say which host has it, in which epoch. */
export function sessionText(session: string, host: Uint8Array, epoch: number): Uint8Array {
  return concat(SESSION_DOMAIN, utf8(session), host, u64(epoch))
}
