// Grants, invites and journals as this client reads them, against the vectors.

import { expect, test } from 'vitest'
import { hex, unhex } from '../src/wire/bytes'
import { decodeChain } from '../src/wire/grants'
import { actorIdOf, hostChannelId, isSessionId } from '../src/wire/ids'
import { invitePrologue, parseLink, proofOf, pskOf } from '../src/wire/invites'
import { readRecords } from '../src/wire/journal'
import { type Json, plain, vectors } from './vectors'

const known = vectors('grants')
const refusedAs = (code: string) => expect.objectContaining({ code })

test('a chain says what it allows, where and until when', () => {
  const links = decodeChain(unhex(known.chain.bytes))
  expect(links.length).toBe(known.chain.links.length)
  for (const [at, wanted] of known.chain.links.entries()) {
    const { grant, id, signature } = links[at]!
    expect(hex(id)).toBe(wanted.id)
    expect(hex(signature)).toBe(wanted.signature)
    expect(hex(grant.holder)).toBe(wanted.holder)
    expect([grant.reach, grant.rights, grant.expires]).toEqual([wanted.reach, wanted.rights, wanted.expires])
    expect([grant.inputsPerS, grant.bytesPerS]).toEqual([wanted.inputs_per_s, wanted.bytes_per_s])
  }
})

test.each(known.judged.filter((each: Json) => !each.error) as Json[])(
  'a good chain is read: $why',
  ({ chain }) => {
    expect(decodeChain(unhex(chain)).length).toBeGreaterThan(0)
  },
)

const MALFORMED = [
  'seven links',
  'no links',
  'another version',
  'a byte too many',
  'a number written longer than it is',
]
test.each(MALFORMED)('not a chain: %s', (why) => {
  const { chain } = known.judged.find((each: Json) => each.why === why)
  expect(() => decodeChain(unhex(chain))).toThrow(refusedAs('grant_invalid'))
})

test('no byte of a link but its signature can be changed and still be read as the same', () => {
  const bytes = unhex(known.chain.bytes)
  const before = JSON.stringify(decodeChain(bytes).map(({ id }) => hex(id)))
  for (let at = 0; at < bytes.length; at += 3) {
    const altered = bytes.slice()
    altered[at]! ^= 1
    let after: string
    try {
      const read = decodeChain(altered)
      after = JSON.stringify(read.map(({ id, signature }) => hex(id) + hex(signature)))
    } catch {
      continue
    }
    expect(after).not.toBe(before)
  }
})

test('a link of an invite, and what is made from its code', () => {
  const wanted = known.invite
  const link = parseLink(`  ${wanted.link}\n`)
  expect(link.relay).toBe('https://relay.example')
  expect([hex(link.id), hex(link.code), hex(link.hostKey)]).toEqual([wanted.id, wanted.code, wanted.host_key])
  expect(hex(parseLink(wanted.pinned).pin!)).toBe(wanted.certificate)
  const proof = proofOf(link.id, link.code)
  expect(hex(proof)).toBe(wanted.proof)
  expect(hex(pskOf(proof, link.hostKey))).toBe(wanted.psk)
  expect(hex(invitePrologue(link.id, link.hostKey))).toBe(wanted.prologue)
})

test.each([
  ['nothing', ''],
  ['another page', 'https://relay.example/i'],
  ['a part is missing', known.invite.link.replace(/\.[^.]*$/, '')],
  ['cut off', known.invite.link.slice(0, -1)],
  ['a character of another alphabet', known.invite.link.replace('ICEi', 'IC+i')],
  ['a query', known.invite.link.replace('/i#', '/i?x=1#')],
  ['a name and password', known.invite.link.replace('relay.example', 'me:secret@relay.example')],
  ['not for a browser', known.invite.link.replace('https:', 'javascript:')],
  ['no relay', known.invite.link.replace('relay.example', '')],
  ['a slash too many', known.invite.link.replace('/i#', '//i#')],
  ['a fingerprint without TLS', known.invite.pinned.replace('https', 'http')],
  ['a fingerprint cut off', known.invite.pinned.slice(0, -4)],
  ['far too long', `${known.invite.link}${'A'.repeat(600)}`],
])('not a link: %s', (_, text) => {
  expect(() => parseLink(text)).toThrow(refusedAs('bad_link'))
})

test('ids are made from keys as everywhere', () => {
  const { claim } = vectors('protocol')
  expect(actorIdOf(unhex(claim.actor_key))).toBe(claim.actor)
  expect(isSessionId(hostChannelId(unhex(claim.host_key)))).toBe(true)
  expect(isSessionId('build')).toBe(false)
  const journal = vectors('journal')
  expect(hostChannelId(unhex(journal.session_key))).toBe(journal.session)
})

test('records of a journal are read, and must follow one another', () => {
  const { records } = vectors('journal')
  const bytes: Uint8Array[] = records.map((each: Json) => unhex(each.record))
  const read = readRecords(bytes)
  expect(read.map(({ kind }) => kind)).toEqual(records.map((each: Json) => each.kind))
  expect(read[0]?.fields).toEqual(plain(records[0].body))
  expect(() => readRecords([bytes[0]!, bytes[2]!])).toThrow(refusedAs('journal_damaged'))
  const altered = bytes.map((each) => each.slice())
  altered[1]![20]! ^= 1
  expect(() => readRecords(altered)).toThrow(refusedAs('journal_damaged'))
})
