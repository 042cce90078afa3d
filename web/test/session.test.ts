// A view on a session through losses of its attachment. What an attachment does is tested with a real host
// (tests/e2e/test_web_protocol.py); here it is a stand-in, so that things happen in the order that matters.

import { signal } from '@preact/signals-core'
import { beforeEach, expect, test, vi } from 'vitest'
import type { Unreached } from '../src/hold/api'
import type { AttachOptions } from '../src/hold/attachment'
import type { EpochStore } from '../src/hold/epoch-store'
import type { MachineLink } from '../src/hold/machine-link'
import { OpenSession } from '../src/hold/open-session'
import { HoldError } from '../src/wire/errors'
import type { Envelope } from '../src/wire/generated/values'
import { CHECKPOINTS, session } from './ui/fixtures'

const ID = '0'.repeat(26)
const size = { cols: 80, rows: 24 }

type Answer = (outcome: { input_seq: number } | HoldError) => void

class StandIn {
  static made: StandIn[] = []
  readonly epoch = 1
  answer: Answer = () => undefined
  closed = false
  readonly sent: { tag: string; seq: number }[] = []
  readonly connection = {
    over: false,
    ask: () => new Promise(() => undefined),
    send: (tag: string, { seq }: { seq: number }) => this.sent.push({ tag, seq }),
  }

  constructor(readonly options: AttachOptions) {}

  static async make(_: unknown, __: unknown, options: AttachOptions): Promise<StandIn> {
    const made = new StandIn(options)
    StandIn.made.push(made)
    return made
  }

  attach(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.answer = (outcome) =>
        outcome instanceof HoldError
          ? reject(outcome)
          : resolve({ info: session('x', { id: ID }), ...outcome })
    })
  }

  restart(): boolean {
    return false
  }

  close(): void {
    if (this.closed) return
    this.closed = this.connection.over = true
    this.options.onEnd(new HoldError('closed', 'this view was closed'))
  }

  lost(): void {
    this.connection.over = true
    this.options.onEnd(new HoldError('host_lost', 'lost', '', true))
  }

  resync(offset: number): void {
    const data = new Uint8Array(1)
    this.options.onOutput({ t: 'resync', channel: 1, offset, data, size, skipped: 0 } as never)
  }
}

vi.mock('../src/hold/attachment', () => ({
  get Attachment() {
    return StandIn
  },
}))

beforeEach(() => {
  StandIn.made = []
})

type Report = { link: string; why: string; unreached: Unreached | null; trouble: null }

function opened(ask: (tag: string) => Promise<unknown> = () => new Promise(() => undefined), named = ID) {
  const rights = (names: string[]) => [{ scope: { kind: 'all', name: '' }, rights: names, expires_at: null }]
  const envelopes = signal(rights(['observe', 'input']) as unknown as Envelope[])
  const report = signal<Report>({ link: 'online', why: '', unreached: null, trouble: null })
  const link = {
    key: new Uint8Array(32),
    keys: { signer: { public: new Uint8Array(32) } },
    sessions: { find: () => null, shown: () => undefined },
    report,
    actors: signal([]),
    me: signal(null),
    envelopes,
    grant: signal({ rights: [], expires: Infinity }),
    throughRelay: async () => ({}),
    closeIfSilent: () => undefined,
    checkShutOut: () => undefined,
    refreshActors: async () => undefined,
    ask,
  } as unknown as MachineLink
  const view = new OpenSession(link, {} as EpochStore, named, {})
  const may = (...names: string[]) => (envelopes.value = rights(names) as unknown as Envelope[])
  return { view, may, report }
}

/** The next attachment, when it is asked for; `count` were made by then. */
async function attaching(count: number): Promise<StandIn> {
  await vi.waitFor(() => expect(StandIn.made.length).toBe(count))
  const made = StandIn.made.at(-1) as StandIn
  await Promise.resolve()
  return made
}

const online = (view: OpenSession) => vi.waitFor(() => expect(view.link.value.at).toBe('online'))

test('a screen that is asked for while the way back is made is not forgotten', async () => {
  const { view } = opened()
  const first = await attaching(1)
  first.answer({ input_seq: 0 })
  await online(view)
  first.resync(100)
  first.lost()
  const second = await attaching(2)
  expect(second.options.since).toBe(100)
  view.resync() // the page lost its place: what comes from 100 on is of no use
  second.answer({ input_seq: 0 })
  const third = await attaching(3)
  expect([second.closed, third.options.since]).toEqual([true, null])
  third.answer({ input_seq: 0 })
  await online(view)
  expect(third.closed).toBe(false)
  view.close()
})

test('a view that loses the right to type watches, and types again when it gets it back', async () => {
  const { view, may } = opened()
  const first = await attaching(1)
  expect(first.options.observe).toBe(false)
  first.answer({ input_seq: 0 })
  await online(view)
  may('observe')
  first.options.onEnd(new HoldError('not_permitted', 'no'))
  const second = await attaching(2)
  expect([second.options.observe, view.observing.value]).toEqual([true, true])
  second.answer({ input_seq: 0 })
  await online(view)
  may('observe', 'input')
  const third = await attaching(3)
  expect([third.options.observe, view.observing.value, second.closed]).toEqual([false, false, true])
  third.answer({ input_seq: 0 })
  await online(view)
  view.close()
})

test('a right that comes back while the watcher is being made is used too', async () => {
  const { view, may } = opened()
  const first = await attaching(1)
  may('observe')
  first.answer(new HoldError('not_permitted', 'no'))
  const second = await attaching(2)
  may('observe', 'input')
  await vi.waitFor(() => expect(view.observing.value).toBe(false))
  second.answer({ input_seq: 0 })
  const third = await attaching(3)
  expect([second.closed, third.options.observe]).toEqual([true, false])
  view.close()
})

test('keys are sent again after a loss, a secret is not, and that is said', async () => {
  const { view } = opened()
  const notices: string[] = []
  view.onNotice(({ kind }) => notices.push(kind))
  const first = await attaching(1)
  first.answer({ input_seq: 0 })
  await online(view)
  view.input(new Uint8Array([107]))
  const secret = view.secret('s').catch((error: HoldError) => error.code)
  expect(first.sent.map(({ seq }) => seq)).toEqual([1, 2])
  first.lost()
  const second = await attaching(2)
  second.answer({ input_seq: 0 })
  await online(view)
  expect(second.sent.map(({ seq }) => seq)).toEqual([1])
  expect(await secret).toBe('input_unknown')
  expect(notices).toEqual(['input_unknown'])
  view.close()
})

test('what is over is said to be, and how it ended, although no way to it can be made', async () => {
  const ending = {
    code: null,
    signal: 9,
    lost: null,
    cause: null,
    successor: '',
    checkpoint: '',
    moved_to: '',
  }
  const info = session('x', { id: ID, state: 'ended', ending })
  for (const named of [ID, 'x']) {
    const { view } = opened(async () => ({ info }), named)
    await vi.waitFor(() => expect(view.link.value).toEqual({ at: 'ended', ending }))
    expect(view.info.value?.ending).toEqual(ending)
  }
})

test('what ended while this page was cut off is not said to be running', async () => {
  let state = 'prompt'
  const ask = async () => ({ info: session('x', { id: ID, state: state as 'prompt' }) })
  const { view } = opened(ask)
  const first = await attaching(1)
  first.answer({ input_seq: 0 })
  await online(view)
  state = 'ended'
  first.lost()
  await vi.waitFor(() => expect(view.link.value.at).toBe('ended'))
})

test('a machine that does not answer while the page opens is said to be silent', async () => {
  const { view, report } = opened(undefined, 'x')
  await Promise.resolve()
  report.value = {
    link: 'offline',
    why: 'the host did not answer in time',
    unreached: 'silent',
    trouble: null,
  }
  expect(view.link.value).toMatchObject({ at: 'offline', unreached: 'silent' })
  view.close()
})

test('the checkpoint that a session falls asleep in is known, although its channel ends before the answer', async () => {
  const checkpoints = async (tag: string) =>
    tag === 'checkpoints' ? { checkpoints: CHECKPOINTS } : new Promise(() => undefined)
  const { view } = opened(checkpoints)
  const first = await attaching(1)
  first.answer({ input_seq: 0 })
  await online(view)
  let lost: (why: Error) => void = () => undefined
  first.connection.ask = () => new Promise((_, reject) => (lost = reject))
  const made = view.checkpoint('for the night', true)
  const ending = {
    code: null,
    signal: null,
    lost: null,
    cause: null,
    successor: '',
    checkpoint: 'ck-7',
    moved_to: '',
  }
  first.options.onOutput({ t: 'closed', channel: 1, ending } as never)
  lost(new HoldError('host_lost', 'the connection was lost'))
  expect((await made).id).toBe('ck-7')
  expect(view.info.value?.state).toBe('asleep')
})
