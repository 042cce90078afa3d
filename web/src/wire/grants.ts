// Grants as a holder reads them: what a chain allows, where and until when (docs/grants.md). Everything has exactly one
// form: what is read is written again and compared. Only hosts judge whether a chain is valid.

import { concat, domain, equal } from './bytes'
import { sha256, SIGNATURE_BYTES } from './crypto'
import { HoldError } from './errors'
import { GRANT_CHAIN_MAX_BYTES, GRANT_LINK_MAX_BYTES, GRANT_LINKS_MAX } from './generated/constants'
import { pack } from './msgpack'
import { Decoder } from '@msgpack/msgpack'

const ID_DOMAIN = domain('holdfast grant id v1')
const VERSION = 1
const STEP = /^(host:[0-9a-f]{64}|label:[A-Za-z0-9][A-Za-z0-9._-]{0,63}|session:[0-9a-hjkmnp-tv-z]{26})$/
const RIGHT = /^[a-z.]{1,32}$/
const TIME_MAX = 2 ** 40
const decoder = new Decoder()

export interface Grant {
  issuer: Uint8Array
  holder: Uint8Array
  parent: Uint8Array
  reach: string[]
  rights: string[]
  notBefore: number
  expires: number
  serial: Uint8Array
  inputsPerS: number | null
  bytesPerS: number | null
  delegations: number
}

interface GrantLink {
  grant: Grant
  id: Uint8Array
  signature: Uint8Array
}

const invalid = (message: string) => new HoldError('grant_invalid', message)

/** The links of a chain, the authority's first. */
export function decodeChain(data: Uint8Array): GrantLink[] {
  if (data.length > GRANT_CHAIN_MAX_BYTES) throw invalid(`a chain has at most ${GRANT_CHAIN_MAX_BYTES} bytes`)
  const fields = read(data)
  if (!Array.isArray(fields) || fields.length !== 2 || fields[0] !== VERSION || !Array.isArray(fields[1])) {
    throw invalid('not a chain of grants')
  }
  const links = fields[1] as unknown[]
  if (links.length < 1 || links.length > GRANT_LINKS_MAX)
    throw invalid(`a chain has 1 to ${GRANT_LINKS_MAX} links`)
  if (!equal(pack(fields), data)) throw invalid('a chain is not in its canonical form')
  return links.map(decodeLink)
}

function decodeLink(data: unknown): GrantLink {
  if (!(data instanceof Uint8Array) || data.length <= SIGNATURE_BYTES || data.length > GRANT_LINK_MAX_BYTES) {
    throw invalid('a link of a chain is too short or too long')
  }
  const written = data.subarray(0, -SIGNATURE_BYTES)
  const grant = decodeGrant(read(written))
  if (!equal(encodeGrant(grant), written)) throw invalid('a chain is not in its canonical form')
  return {
    grant,
    id: sha256(concat(ID_DOMAIN, written)),
    signature: data.slice(-SIGNATURE_BYTES),
  }
}

function decodeGrant(fields: unknown): Grant {
  if (!Array.isArray(fields) || fields.length !== 11) throw invalid('not a grant: wrong number of fields')
  const [
    issuer,
    holder,
    parent,
    reach,
    rights,
    notBefore,
    expires,
    serial,
    inputsPerS,
    bytesPerS,
    delegations,
  ] = fields as unknown[]
  const good =
    isBytes(issuer, 32) &&
    isBytes(holder, 32) &&
    (isBytes(parent, 0) || isBytes(parent, 32)) &&
    isTexts(reach, STEP, 0, 8) &&
    isTexts(rights, RIGHT, 1, 32) &&
    isTime(notBefore) &&
    isTime(expires) &&
    expires > notBefore &&
    isBytes(serial, 16) &&
    isRate(inputsPerS) &&
    isRate(bytesPerS) &&
    Number.isSafeInteger(delegations) &&
    (delegations as number) >= 0
  if (!good || !isSorted(rights as string[])) throw invalid('not a grant: a field has the wrong type')
  return {
    issuer: issuer.slice(),
    holder: holder.slice(),
    parent: (parent as Uint8Array).slice(),
    reach,
    rights,
    notBefore,
    expires,
    serial: serial.slice(),
    inputsPerS,
    bytesPerS,
    delegations: delegations as number,
  }
}

/** The list that is signed. Rates are written as float 64, which this language has no type for. */
function encodeGrant(grant: Grant): Uint8Array {
  const before = [
    grant.issuer,
    grant.holder,
    grant.parent,
    grant.reach,
    grant.rights,
    grant.notBefore,
    grant.expires,
    grant.serial,
  ]
  return concat(
    new Uint8Array([0x9b]), // a list of 11
    ...before.map((field) => pack(field)),
    packRate(grant.inputsPerS),
    packRate(grant.bytesPerS),
    pack(grant.delegations),
  )
}

function packRate(rate: number | null): Uint8Array {
  if (rate === null) return pack(null)
  const bytes = new Uint8Array(9)
  bytes[0] = 0xcb
  new DataView(bytes.buffer).setFloat64(1, rate)
  return bytes
}

function read(data: Uint8Array): unknown {
  try {
    return decoder.decode(data)
  } catch {
    throw invalid('not a grant')
  }
}

function isBytes(value: unknown, size: number): value is Uint8Array {
  return value instanceof Uint8Array && value.length === size
}

function isTexts(value: unknown, form: RegExp, least: number, most: number): value is string[] {
  return (
    Array.isArray(value) &&
    value.length >= least &&
    value.length <= most &&
    value.every((each) => typeof each === 'string' && form.test(each))
  )
}

function isSorted(texts: string[]): boolean {
  return texts.every((each, at) => at === 0 || (texts[at - 1] as string) < each)
}

function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < TIME_MAX
}

function isRate(value: unknown): value is number | null {
  return value === null || (typeof value === 'number' && value > 0 && Number.isFinite(value))
}
