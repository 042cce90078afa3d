// Invite links, and the secrets derived from their code (docs/grants.md, *Invites*). Everything secret is after the `#`,
// which browsers do not send; the code itself is never sent to anyone.

import { concat, domain, fromBase64url } from './bytes'
import { hmacSha256 } from './crypto'
import { HoldError } from './errors'
import { INVITE_LINK_MAX_CHARS } from './generated/constants'

const PROOF_DOMAIN = domain('holdfast invite proof v1')
const PSK_DOMAIN = domain('holdfast invite psk v1')
const PROLOGUE_DOMAIN = domain('holdfast invite channel v1')
const PATH = '/i'
const WHOLE = 'copy the whole link, from http to its last character'

export interface InviteLink {
  relay: string // the relay's address, without the path of invites
  id: Uint8Array
  code: Uint8Array
  hostKey: Uint8Array
  pin: Uint8Array | null // SHA-256 of the relay's certificate; null: others vouch for it
}

const bad = (message: string, hint = WHOLE) => new HoldError('bad_link', message, hint)

/** The parts of a link; throws bad_link unless it is complete. */
export function parseLink(given: string): InviteLink {
  if (given.length > INVITE_LINK_MAX_CHARS)
    throw bad(`a link has at most ${INVITE_LINK_MAX_CHARS} characters`)
  const link = given.trim()
  const hash = link.indexOf('#')
  const front = hash < 0 ? link : link.slice(0, hash)
  const parts = (hash < 0 ? '' : link.slice(hash + 1)).split('.').map((part) => fromBase64url(part))
  if (!front.endsWith(PATH) || (parts.length !== 3 && parts.length !== 4)) {
    throw bad('this is not an invite link')
  }
  const [id, code, hostKey, pin = null] = parts
  if (id?.length !== 8 || code?.length !== 16 || hostKey?.length !== 32) {
    throw bad('a part of the link is missing or truncated')
  }
  const relay = front.slice(0, -PATH.length)
  if (parts.length === 4 && (pin?.length !== 32 || !relay.startsWith('https://'))) {
    throw bad("the link's fingerprint is truncated or not applicable")
  }
  // No name or password, no query: what is in front of the '#' reaches the relay.
  if (!/^https?:\/\/[A-Za-z0-9.\-_~[][A-Za-z0-9.\-_~:/[\]]*$/.test(relay)) {
    throw bad("the link has no relay address before '/i#'")
  }
  if (relay.endsWith('/')) throw bad("the relay's address ends with a '/'")
  return { relay, id, code, hostKey, pin }
}

/** The only form in which the host keeps a code. */
export function proofOf(invite: Uint8Array, code: Uint8Array): Uint8Array {
  return hmacSha256(code, concat(PROOF_DOMAIN, invite))
}

/** The secret of the IKpsk1 handshake. */
export function pskOf(proof: Uint8Array, hostKey: Uint8Array): Uint8Array {
  return hmacSha256(proof, concat(PSK_DOMAIN, hostKey))
}

export function invitePrologue(invite: Uint8Array, hostKey: Uint8Array): Uint8Array {
  return concat(PROLOGUE_DOMAIN, invite, hostKey)
}
