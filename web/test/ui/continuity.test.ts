// What a page says of a session that is checkpointed, restored or certified.

import { expect, test } from 'vitest'
import { certificateOf, certifiedFacts } from '../../src/ui/text/certificate'
import { lineageText } from '../../src/ui/text/lineage'
import { howFar, shortly } from '../../src/ui/text/progress'
import { added, EMPTY } from '../../src/ui/session/timeline-model'
import { NOW } from './fixtures'

const MB = 1024 * 1024
const told = { work: 'checkpoint', phase: 'freeze', done: 45 * MB, total: 100 * MB, seenAt: NOW }

test('how far it is, in words and as a part, while something is said of it', () => {
  expect(howFar(told, NOW)).toEqual({
    work: 'Checkpointing',
    phase: 'writing its memory',
    part: 0.45,
    amount: '45 MB of 100 MB',
    still: true,
  })
  expect(shortly(howFar(told, NOW)!)).toBe('Checkpointing 45 %')
  expect(howFar({ ...told, phase: 'store' }, NOW)?.still).toBe(false) // it runs on
  expect(howFar(told, NOW + 10)).toBeNull() // nobody said that it is over
  expect(howFar(null, NOW)).toBeNull()
})

test('of how much is not always known, and a newer host has works and phases of its own', () => {
  const counted = howFar({ ...told, total: 0 }, NOW)!
  expect([counted.part, counted.amount, shortly(counted)]).toEqual([null, '45 MB', 'Checkpointing'])
  const later = howFar({ ...told, work: 'constructor', phase: 'toString', done: 0, total: 0 }, NOW)!
  expect([later.work, later.phase, later.amount]).toEqual(['At work', '', ''])
})

const CERTIFICATE = {
  holdfast: 'certificate v1',
  session: 'abc',
  name: 'build',
  made_at: NOW,
  last: 412,
  host_key: 'c3'.repeat(32),
  epochs: [
    { epoch: 1, host: 'c3', began_at: NOW - 9000 },
    { epoch: 2, host: 'd4', began_at: NOW - 300 },
  ],
  returns: [
    {
      epoch_before: 1,
      epoch: 2,
      kind: 'memory',
      downtime_s: 31,
      bytes: 12 * MB,
      inputs_lost: 1,
      resets: 2,
    },
  ],
  predecessor: '',
  revived: false,
  closed_by: '',
}

test('a certificate says on one page what became of the session', () => {
  const facts = Object.fromEntries(certifiedFacts(certificateOf(JSON.stringify(CERTIFICATE))!, NOW))
  expect(facts.Record).toBe('Unbroken, 412 entries.')
  expect(facts.Epochs).toMatch(/^2, on 2 hosts; the first began /)
  expect(facts['Epoch 2']).toBe(
    'Its processes went on as they were; away for 31 s; 12 MB restored; 2 connections reset; 1 input after the checkpoint not part of it.',
  )
  const never = certificateOf(
    JSON.stringify({ ...CERTIFICATE, returns: [], predecessor: 'def', revived: true }),
  )!
  const first = Object.fromEntries(certifiedFacts(never, NOW))
  expect(first['Came back']).toBe('Never: it was never away.')
  expect(first.Follows).toContain('def, which was lost')
})

test('what is no certificate is not read as one', () => {
  for (const text of ['', '{}', '[]', 'null', '{"holdfast": "grant v1"}', '{"holdfast": "certificate v1"}'])
    expect(certificateOf(text)).toBeNull()
})

test('the lineage is said from the second life on', () => {
  expect(lineageText(1, null)).toBe('')
  expect(lineageText(2, null)).toBe('Epoch 2')
  expect(lineageText(3, { when: '5m ago', actor: 'maria', kind: 'application' })).toBe(
    'Epoch 3 · restored 5m ago by maria, with the state its program had saved',
  )
})

test('the record has where a session comes from', () => {
  const entry = (seq: number, kind: string, fields: Record<string, unknown>) => ({
    seq,
    at: NOW + seq,
    actor: 'a'.repeat(26),
    kind,
    fields,
  })
  const names = { ['a'.repeat(26)]: 'maria' }
  const first = added(EMPTY, [entry(1, 'began', { predecessor: 'before' })], names)
  expect(first.lineage).toEqual({ follows: 'before', back: null })
  const back = added(first, [entry(2, 'restored', { kind: 'memory', before: 1 })], names)
  expect(back.lineage).toEqual({ follows: 'before', back: { at: NOW + 2, actor: 'maria', kind: 'memory' } })
})
