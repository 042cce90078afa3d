import { signal } from '@preact/signals'
import { expect, test } from 'vitest'
import type { LinkState, SessionInfo, TurnState } from '../../src/hold/api'
import { TypedInput } from '../../src/ui/session/typed-input'
import { session, TURN_OTHER } from './fixtures'

function make(turn: TurnState | null, answer?: TurnState) {
  const sent: string[] = []
  const hints: string[] = []
  let asked = 0
  const clock = { now: 0 }
  const way = {
    info: signal<SessionInfo | null>(session('x')),
    turn: signal(turn),
    observing: signal(false),
    link: signal<LinkState>({ at: 'online' }),
    input: (bytes: Uint8Array) => void sent.push(new TextDecoder().decode(bytes)),
    requestTurn: () => {
      asked += 1
      return answer ? Promise.resolve(answer) : Promise.reject(new Error('no'))
    },
  }
  const typing = new TypedInput(
    way,
    (text) => hints.push(text),
    () => hints.push('failed'),
    () => clock.now,
  )
  return { typing, sent, hints, way, clock, asked: () => asked }
}

const FREE: TurnState = { turn: { ...TURN_OTHER, holder: '' }, yours: false, waiting: false }
const MINE: TurnState = { turn: TURN_OTHER, yours: true, waiting: false }
const OTHER: TurnState = { turn: TURN_OTHER, yours: false, waiting: false }
const QUEUED: TurnState = { ...OTHER, waiting: true }
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve))

test('with the turn, or when it is free, keys go straight through', () => {
  for (const turn of [MINE, FREE, null]) {
    const { typing, sent, asked } = make(turn)
    typing.text('a')
    expect([sent, asked()]).toEqual([['a'], 0])
  }
})

test('the first key asks for the turn, and goes through if it can be had at once', async () => {
  const { typing, sent, asked } = make(OTHER, MINE)
  typing.text('a')
  typing.text('b')
  expect(sent).toEqual([])
  await settled()
  expect([sent, asked()]).toEqual([['a', 'b'], 1])
})

test('keys typed while waiting are dropped and said to be', async () => {
  const { typing, sent, hints, way, asked } = make(OTHER, QUEUED)
  typing.text('rm -rf /')
  await settled()
  way.turn.value = QUEUED
  typing.text('\r')
  way.turn.value = MINE
  await settled()
  expect(sent).toEqual([])
  expect(hints.every((hint) => hint.includes('claude holds the turn'))).toBe(true)
  expect([hints.length, asked()]).toEqual([2, 1])
})

test('nothing that was held is sent when asking failed', async () => {
  const { typing, sent, hints } = make(OTHER)
  typing.text('a')
  await settled()
  expect([sent, hints]).toEqual([[], ['failed']])
})

test('a focus or mouse report neither takes the turn nor asks for it', () => {
  for (const turn of [FREE, OTHER]) {
    const { typing, sent, asked, hints } = make(turn, MINE)
    typing.text('\x1b[I')
    typing.text('\x1b[<35;3;4M')
    typing.binary('\x1b[M !!')
    expect([sent, asked(), hints]).toEqual([[], 0, []])
  }
  const { typing, sent } = make(MINE)
  typing.text('\x1b[I')
  expect(sent).toEqual(['\x1b[I'])
})

test('a watcher, a halted and an ended session take no keys and say why', () => {
  const watching = make(MINE)
  watching.way.observing.value = true
  const halted = make(MINE)
  halted.way.info.value = session('x', { state: 'halted' })
  const ended = make(MINE)
  ended.way.link.value = { at: 'ended', ending: null }
  for (const { typing, sent, hints } of [watching, halted, ended]) {
    typing.text('a')
    expect(sent).toEqual([])
    expect(hints.length).toBe(1)
  }
})

test('keys typed after the turn event wait for those typed before it', async () => {
  const { typing, sent, way } = make(OTHER, MINE)
  typing.text('a')
  way.turn.value = MINE // told, and the answer is still on its way
  typing.text('b')
  await settled()
  typing.text('c')
  expect(sent).toEqual(['a', 'b', 'c'])
})

async function waitingWith(text: string) {
  const made = make(OTHER, QUEUED)
  const [first, ...rest] = text
  made.typing.text(first!)
  await settled()
  made.way.turn.value = QUEUED
  for (const key of rest) made.typing.text(key)
  return made
}

test('the tail of a line that was begun without the turn is never sent, and its Enter neither', async () => {
  const { typing, sent, hints, way } = await waitingWith('echo ')
  way.turn.value = MINE
  for (const key of 'rm -rf x\r') typing.text(key)
  expect(sent).toEqual([])
  expect(hints.at(-1)).toContain('was not sent. Type it again')
  for (const key of 'ls\r') typing.text(key)
  expect(sent.join('')).toBe('ls\r')
})

test('a pause ends the dropped line as well', async () => {
  const { typing, sent, clock, way } = await waitingWith('ech')
  way.turn.value = MINE
  clock.now += 1000
  typing.text('o')
  clock.now += 1000 // a pause counts from the last key, not from the turn
  typing.text(' ')
  expect(sent).toEqual([])
  clock.now += 1500
  typing.text('l')
  typing.text('s')
  expect(sent).toEqual(['l', 's'])
})

test('a line that was ended before the turn arrived leaves nothing behind', async () => {
  const { typing, sent, way } = await waitingWith('echo a\r')
  way.turn.value = MINE
  typing.text('l')
  expect(sent).toEqual(['l'])
})

test('the rest of a line whose first key the host refused is not sent', async () => {
  const { typing, sent, way } = make(FREE, QUEUED)
  typing.text('e')
  way.turn.value = OTHER
  typing.refused()
  await settled()
  way.turn.value = MINE
  for (const key of 'cho x\r') typing.text(key)
  expect(sent).toEqual(['e']) // refused by the host, so it never arrived
})

test.each([
  ['halted', (way: ReturnType<typeof make>['way']) => (way.info.value = session('x', { state: 'halted' }))],
  [
    'fenced',
    (way: ReturnType<typeof make>['way']) =>
      (way.link.value = {
        at: 'fenced',
        trouble: { code: 'fenced', message: '', hint: '', retryable: true },
      }),
  ],
])('the tail of a line that was begun while the session was %s is not sent once it runs', (_, stop) => {
  const { typing, sent, hints, way, clock } = make(MINE)
  stop(way)
  for (const key of 'echo ') typing.text(key)
  way.info.value = session('x')
  way.link.value = { at: 'online' }
  typing.text('\x1b[I') // nobody typed that
  for (const key of 'rm -rf x\r') typing.text(key)
  expect(sent).toEqual(['\x1b[I'])
  expect(hints.at(-1)).toContain('was not sent. Type it again')
  typing.text('l')
  expect(sent.at(-1)).toBe('l')
  stop(way)
  typing.text('x')
  way.info.value = session('x')
  way.link.value = { at: 'online' }
  clock.now += 1500
  typing.text('s')
  expect(sent.at(-1)).toBe('s') // whoever pauses begins a line
})

test('more than is held while the turn is asked for is dropped whole, not cut', async () => {
  const { typing, sent } = make(OTHER, MINE)
  for (let n = 0; n < 1100; n++) typing.text('x')
  await settled()
  expect(sent).toEqual([])
})
