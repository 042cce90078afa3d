// The machine that guesses what a key will show, held to the vectors of the one in Python.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { GRACE_S, KEYS_MAX, Prediction, type Line, type Overlay } from '../src/hold/prediction'
import { FAST_S, FRAME_S, RoundTrip, SAMPLES, SLOW_S } from '../src/hold/round-trip'

interface Step {
  do: 'typed' | 'printed' | 'accepted' | 'tick' | 'withhold' | 'reset'
  seq: number
  data: string
  offset: number
  now: number
  yes: boolean
  line: Line
  overlay: Overlay | null
  wake_at: number | null
  looks: boolean
}

const path = new URL('../../docs/prediction-vectors.json', import.meta.url)
const vectors = JSON.parse(readFileSync(path, 'utf8')) as {
  grace_s: number
  cases: { name: string; steps: Step[] }[]
}

function play(guess: Prediction, step: Step): void {
  if (step.do === 'typed') guess.typed(step.seq, step.data, step.line)
  else if (step.do === 'printed') guess.printed(step.offset, step.line)
  else if (step.do === 'accepted') guess.accepted(step.seq, step.offset, step.now)
  else if (step.do === 'tick') guess.tick(step.now)
  else if (step.do === 'withhold') guess.withhold(step.yes)
  else guess.reset()
}

describe('the vectors', () => {
  it('are of the same pace, and show something', () => {
    expect(vectors.grace_s).toBe(GRACE_S)
    expect(vectors.cases.flatMap((each) => each.steps).filter((step) => step.overlay).length).toBeGreaterThan(
      100,
    )
  })

  it.each(vectors.cases.map((each) => [each.name, each.steps] as const))('%s', (_, steps) => {
    const guess = new Prediction()
    for (const [number, step] of steps.entries()) {
      play(guess, step)
      const where = `step ${number}, ${step.do} ${step.data ?? ''}`
      expect(guess.overlay(), where).toEqual(step.overlay)
      expect(guess.wakeAt(), where).toBe(step.wake_at)
      expect(guess.looks, where).toBe(step.looks)
    }
  })
})

describe('a prediction', () => {
  const line = (text: string): Line => ({ row: 0, col: text.length, text: text.padEnd(400), plain: true })

  it('stops predicting when the operator is too far ahead', () => {
    const guess = new Prediction()
    for (let seq = 1; seq <= KEYS_MAX + 1; seq++) guess.typed(seq, 'a', line('$ '))
    expect(guess.looks).toBe(false)
  })

  it('draws nothing of what is typed after Enter and never echoed', () => {
    const guess = new Prediction()
    guess.typed(1, 'a', line('$ '))
    guess.printed(1, line('$ a'))
    guess.typed(2, '\r', line('$ a'))
    for (let seq = 3; seq < 20; seq++) {
      guess.typed(seq, 'secret', line('$ a'))
      expect(guess.overlay()).toBeNull()
      guess.accepted(seq, seq, seq)
      guess.printed(seq + 1, { ...line('Password: '), row: 1 })
      guess.tick(seq)
      expect(guess.overlay()).toBeNull()
    }
  })
})

describe('the way', () => {
  it('is long when it was so every time, and short as soon as it was once', () => {
    const way = new RoundTrip()
    way.took(SLOW_S * 2)
    expect(way.slow).toBe(false)
    for (let count = 1; count < SAMPLES; count++) way.took(SLOW_S * 2)
    expect(way.slow).toBe(true)
    way.took((SLOW_S + FAST_S) / 2)
    expect(way.slow).toBe(true)
    way.took(FAST_S / 2)
    expect(way.slow).toBe(false)
    way.forget()
    expect(way.slow).toBe(false)
  })

  it('is judged without what a page adds to each sample', () => {
    const [plain, page] = [new RoundTrip(), new RoundTrip(FRAME_S)]
    for (let count = 0; count < SAMPLES; count++)
      for (const way of [plain, page]) way.took(SLOW_S + FRAME_S / 2)
    expect([plain.slow, page.slow]).toEqual([true, false])
    for (let count = 0; count < SAMPLES; count++) page.took(SLOW_S + FRAME_S * 2)
    expect(page.slow).toBe(true)
    page.took(FAST_S + FRAME_S / 2)
    expect(page.slow).toBe(false)
  })
})
