// What was typed is taken once, or said to be unknown; and what is drawn is bounded.

import { describe, expect, test } from 'vitest'
import { Backoff } from '../src/hold/backoff'
import { OutputDelivery } from '../src/hold/output-delivery'
import { UnackedInputs, KEEP_UNSENT_S } from '../src/hold/unacked-inputs'
import { TaskQueue } from '../src/hold/task-queue'
import { pieces } from '../src/hold/paste'
import type { HoldError } from '../src/wire/errors'

/** After so many seconds, by a clock that stands still in sleep and by one that does not. */
const after = (steady: number, wall = steady) => ({ steady, wall: 1_700_000_000 + wall })

function typed(inputs: UnackedInputs, text: string, sent: boolean, at = 0, once = false) {
  const outcomes: unknown[] = []
  const settle = (outcome: unknown) => outcomes.push(outcome)
  const offer = inputs.add('submit', { text }, text.length, after(at), settle, once)
  if (sent) Object.assign(offer, { sentAt: at, request: offer.seq * 10 })
  return { offer, outcomes }
}

const codes = (outcomes: unknown[]) => outcomes.map((each) => (each as HoldError).code ?? 'taken')

describe('coming back', () => {
  test('what the host took is done, the rest goes again under its old numbers', () => {
    const inputs = new UnackedInputs()
    const one = typed(inputs, 'a', true)
    const two = typed(inputs, 'b', true)
    const three = typed(inputs, 'c', false)
    const back = inputs.back(1, false, after(1))
    expect(codes(one.outcomes)).toEqual(['taken'])
    expect(back.again.map(({ seq }) => seq)).toEqual([2, 3])
    expect([back.unknown, back.late]).toEqual([[], []])
    inputs.taken(3)
    expect([codes(two.outcomes), codes(three.outcomes)]).toEqual([['taken'], ['taken']])
    expect(inputs.pending.value).toBe(0)
  })

  test('in another incarnation what was sent is unknown and never sent again', () => {
    const inputs = new UnackedInputs()
    const one = typed(inputs, 'a', true)
    typed(inputs, 'b', false)
    const back = inputs.back(0, true, after(1))
    expect(codes(one.outcomes)).toEqual(['input_unknown'])
    expect(back.again.map(({ seq }) => seq)).toEqual([2])
  })

  test('a host that forgot this client cannot say what it took', () => {
    const inputs = new UnackedInputs()
    typed(inputs, 'a', true)
    inputs.taken(1)
    const two = typed(inputs, 'b', true)
    inputs.back(0, false, after(1))
    expect(codes(two.outcomes)).toEqual(['input_unknown'])
  })

  test('what was never sent is not sent much later', () => {
    const inputs = new UnackedInputs()
    const one = typed(inputs, 'rm -r x', false, 0)
    const two = typed(inputs, 'y', false, KEEP_UNSENT_S)
    const back = inputs.back(0, false, after(KEEP_UNSENT_S + 1))
    expect(back.late).toEqual([one.offer])
    expect(back.again).toEqual([two.offer])
    expect(codes(one.outcomes)).toEqual(['host_lost'])
  })

  test('what was written into a dead connection is not sent again much later', () => {
    const inputs = new UnackedInputs()
    const one = typed(inputs, 'rm -r x', true, 0)
    const two = typed(inputs, 'y', true, KEEP_UNSENT_S)
    const back = inputs.back(0, false, after(KEEP_UNSENT_S + 1))
    expect(back.unknown).toEqual([one.offer])
    expect(back.again).toEqual([two.offer])
    expect(codes(one.outcomes)).toEqual(['input_unknown'])
    expect(inputs.pending.value).toBe(1)
  })

  test('a machine that slept has been away that long, and a clock that was set back makes nothing young', () => {
    const asleep = new UnackedInputs()
    const one = typed(asleep, 'hunter2', true)
    expect(asleep.back(0, false, after(1, 3600)).unknown).toEqual([one.offer])
    const setBack = new UnackedInputs()
    const two = typed(setBack, 'hunter2', true)
    expect(setBack.back(0, false, after(KEEP_UNSENT_S + 1, -3600)).unknown).toEqual([two.offer])
  })

  test('a secret is never sent on another connection, however soon it comes', () => {
    const inputs = new UnackedInputs()
    const sent = typed(inputs, 'hunter2', true, 0, true)
    const unsent = typed(inputs, 'hunter3', false, 0, true)
    const key = typed(inputs, 'k', true)
    const back = inputs.back(0, false, after(0))
    expect([back.unknown, back.late, back.again]).toEqual([[sent.offer], [unsent.offer], [key.offer]])
    expect([codes(sent.outcomes), codes(unsent.outcomes)]).toEqual([['input_unknown'], ['host_lost']])
  })

  test('a secret that was taken is done', () => {
    const inputs = new UnackedInputs()
    const one = typed(inputs, 'hunter2', true, 0, true)
    expect(inputs.back(1, false, after(3600)).unknown).toEqual([])
    expect(codes(one.outcomes)).toEqual(['taken'])
  })
})

test('a refusal drops the one that was refused, and only it', () => {
  const inputs = new UnackedInputs()
  const one = typed(inputs, 'a', true)
  const two = typed(inputs, 'b', true)
  const error = new Error('held') as HoldError
  expect(inputs.refused(10, error)).toBe(one.offer)
  expect(inputs.refused(11, error)).toBe(null)
  expect([one.outcomes.length, two.outcomes.length]).toEqual([1, 0])
})

test('when there is no way back nothing is left waiting', () => {
  const inputs = new UnackedInputs()
  const one = typed(inputs, 'a', true)
  const two = typed(inputs, 'b', false)
  inputs.giveUp(Object.assign(new Error('gone'), { code: 'session_ended' }) as unknown as HoldError)
  expect([codes(one.outcomes), codes(two.outcomes)]).toEqual([['input_unknown'], ['session_ended']])
})

describe('delivery', () => {
  const size = { cols: 80, rows: 24 }
  const bytes = (count: number) => new Uint8Array(count)

  test('waits for the terminal, and keeps what comes meanwhile in order', async () => {
    const delivery = new OutputDelivery(() => undefined)
    const got: number[] = []
    let drawn: () => void = () => undefined
    delivery.listen((_, __, ___, { offset }) => {
      got.push(offset)
      return new Promise((resolve) => (drawn = resolve))
    })
    delivery.live(0, bytes(1), size)
    delivery.live(1, bytes(1), size)
    expect(got).toEqual([0])
    drawn()
    await new Promise((resolve) => setTimeout(resolve))
    expect(got).toEqual([0, 1])
    expect(delivery.next).toBe(2)
  })

  test('drops what is too much, and asks for a screen once, when the terminal has caught up', async () => {
    let asked = 0
    const delivery = new OutputDelivery(() => asked++)
    let drawn: () => void = () => undefined
    delivery.listen(() => new Promise((resolve) => (drawn = resolve)))
    for (let at = 0; at < 200; at++) delivery.live(at << 16, bytes(1 << 16), size)
    expect([asked, delivery.next]).toEqual([0, null])
    drawn()
    await new Promise((resolve) => setTimeout(resolve))
    expect(asked).toBe(1)
    delivery.live(200 << 16, bytes(1), size)
    delivery.resync(1 << 30, bytes(10), size, true)
    expect([asked, delivery.next]).toEqual([1, 1 << 30])
  })

  test('a screen takes the place of what is not drawn yet', async () => {
    const delivery = new OutputDelivery(() => undefined)
    const got: string[] = []
    delivery.live(0, bytes(1), size)
    delivery.resync(5, bytes(1), size, false)
    delivery.live(5, bytes(1), size)
    delivery.listen((_, kind, __, { offset }) => void got.push(`${kind} ${offset}`))
    expect(got).toEqual(['resync 5', 'live 5'])
  })
})

test('a text is cut between characters, into pieces that fit', () => {
  const text = 'aä漢😀'.repeat(50)
  const parts = pieces(text, 16)
  expect(parts.join('')).toBe(text)
  for (const part of parts) {
    expect(new TextEncoder().encode(part).length).toBeLessThanOrEqual(16)
    expect(part).not.toMatch(/^[\udc00-\udfff]|[\ud800-\udbff]$/)
  }
  expect(pieces('')).toEqual([])
})

test('work is done in the order it was asked for, also when some of it takes longer or fails', async () => {
  const done: number[] = []
  const failed: unknown[] = []
  const ordered = new TaskQueue((error) => failed.push(error))
  for (const [at, ms] of [20, 0, 5].entries()) {
    ordered.run(async () => {
      await new Promise((resolve) => setTimeout(resolve, ms))
      done.push(at)
      if (at === 1) throw new Error('one')
    })
  }
  await new Promise<void>((resolve) => ordered.run(resolve))
  expect(done).toEqual([0, 1, 2])
  expect(failed.length).toBe(1)
})

test('waits grow, stay bounded, and differ between pages', () => {
  const low = new Backoff(() => 0)
  const high = new Backoff(() => 1)
  const waits = Array.from({ length: 20 }, () => [low.next(), high.next()] as const)
  expect(waits[0]![0]).toBeLessThan(0.3)
  expect(waits.every(([one, other]) => one < other && other < 12)).toBe(true)
  expect(waits.at(-1)![0]).toBeGreaterThan(5)
})
