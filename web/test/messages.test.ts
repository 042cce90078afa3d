// Messages against the vectors, and the requests that need no signature against the document.

import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { concat, unhex } from '../src/wire/bytes'
import { HOST_MESSAGES } from '../src/wire/generated/messages'
import { decodeHostMessage, encodeRequest, goesBySession, mustBeSigned } from '../src/wire/messages'
import { pack, unpackMap } from '../src/wire/msgpack'
import { decodeRelayMessage } from '../src/wire/relay-messages'
import { type Json, plain, vectors } from './vectors'

const known = vectors('protocol')
const document = (name: string) => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8')

const inVectors = known.messages.filter((each: Json) => Object.hasOwn(HOST_MESSAGES, each.t)) as Json[]

test.each(inVectors)('$t ($name) is read as the vectors say', ({ t, fields, frame }) => {
  const read = decodeHostMessage(unhex(frame).subarray(4)) as unknown as Record<string, unknown>
  const wanted = plain(fields)
  expect(read.t).toBe(t)
  for (const name of Object.keys(read)) {
    // The vectors leave out what was added later and has a default.
    if (name !== 't' && name in wanted) expect({ [name]: read[name] }).toMatchObject({ [name]: wanted[name] })
  }
})

test('what this client says decodes to what the vectors have', () => {
  for (const { t, fields, frame } of known.messages as Json[]) {
    if (
      !['list', 'attach', 'input', 'submit', 'keys', 'resize', 'request_turn', 'seize', 'journal'].includes(t)
    )
      continue
    const { id, ...rest } = plain(fields)
    if ('colour' in unpackMap(unhex(frame).subarray(4))) continue // of fields that nobody knows
    expect(unpackMap(encodeRequest(t, id, rest))).toEqual(unpackMap(unhex(frame).subarray(4)))
  }
})

test.each(['news', 'toString'])('an event of a newer host is left out: %s', (t) => {
  expect(decodeHostMessage(pack({ t, session: 'x' }))).toBeNull()
})

describe('what is refused', () => {
  const said = (fields: object) =>
    pack({ t: 'output', channel: 1, offset: 0, data: new Uint8Array(1), ...fields })
  test.each([
    ['text where an int is declared', said({ channel: '1' })],
    ['a truth value where an int is declared', said({ channel: true })],
    ['half a number where an int is declared', said({ offset: 0.5 })],
    ['text where bytes are declared', said({ data: 'x' })],
    ['a missing field', pack({ t: 'output', channel: 1 })],
    ['an unknown answer', pack({ t: 'outputs', id: 7 })],
    ['no name', pack({ x: 1 })],
    ['a list', pack([1])],
    ['bytes after the map', concat(said({}), new Uint8Array(1))],
    ['nothing', new Uint8Array(0)],
  ])('%s', (_, body) => {
    expect(() => decodeHostMessage(body)).toThrow(expect.objectContaining({ code: 'protocol_violation' }))
  })
  test('and a relay that talks like a host', () => {
    expect(() => decodeRelayMessage(said({}))).toThrow(
      expect.objectContaining({ code: 'protocol_violation' }),
    )
  })
  test('fields that nobody knows are passed over, also in values', () => {
    const info = plain(known.messages.find((each: Json) => each.t === 'attached').fields)
    const body = pack({ t: 'attached', ...info, more: 1, info: { ...info.info, later: [1] } })
    expect(decodeHostMessage(body)).not.toHaveProperty('more')
  })
})

test('what only looks is not signed, and all else is', () => {
  const named = /Requests that only look \(([^)]*)\)/.exec(document('channel').replaceAll('\n', ' '))
  const looking = [...(named?.[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name as string)
  expect(looking.length).toBeGreaterThan(15)
  // `hello` is no request: it opens a conversation.
  for (const tag of looking.filter((tag) => tag !== 'hello'))
    expect([tag, mustBeSigned(tag)]).toEqual([tag, false])
  for (const tag of ['input', 'seize', 'make_invite', 'anything new']) expect(mustBeSigned(tag)).toBe(true)
  expect(['attach', 'watch', 'share', 'input'].every(goesBySession)).toBe(true)
  expect(['show', 'journal', 'list'].some(goesBySession)).toBe(false)
})
