// Identities derived from keys (docs/protocol.md, *Who you are*), and what a stream through a relay opens with.

import { concat, domain, utf8 } from './bytes'
import { sha256 } from './crypto'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const LENGTH = 26

function ofKey(kind: string, key: Uint8Array): string {
  let number = 0n
  for (const byte of sha256(concat(domain(kind), key))) number = (number << 8n) | BigInt(byte)
  let text = ''
  for (let digit = 0; digit < LENGTH; digit++) {
    text += ALPHABET[Number(number & 31n)]
    number >>= 5n
  }
  return text
}

export const sessionIdOf = (key: Uint8Array) => ofKey('holdfast session', key)
export const actorIdOf = (key: Uint8Array) => ofKey('holdfast actor', key)

export function isSessionId(text: string): boolean {
  return text.length === LENGTH && [...text].every((digit) => ALPHABET.includes(digit))
}

/** The id used for a host where a channel needs a session's. */
export const hostChannelId = sessionIdOf
/** A host has no incarnations. */
export const HOST_EPOCH = 1

/** The first bytes of a stream: what the channel that follows is about. */
export type Opening = { session: string } | { invite: Uint8Array } | 'host'

export function encodeOpening(opening: Opening): Uint8Array {
  if (opening === 'host') return utf8('H')
  if ('session' in opening) return utf8(`S${opening.session}`)
  return concat(utf8('I'), opening.invite)
}
