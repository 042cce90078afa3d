// A page without a browser: the protocol half of the app, driven line by line. Each line in is one JSON list, a command
// and its arguments; each line out is its result. For tests that need a real host and relay (tests/e2e).

import { createInterface } from 'node:readline'
import { WebSocket as NodeWebSocket } from 'ws'
import type { Hold, Notice, SessionHandle } from '../src/hold/api'
import { asHoldError } from '../src/wire/errors'
import { openHold } from '../src/hold/hold'
import { MemoryStore } from '../src/hold/store'

const sockets: NodeWebSocket[] = []

/** Node has no WebSocket of its own everywhere; and this one can be cut. */
class Cuttable extends NodeWebSocket {
  constructor(url: string) {
    super(url, { perMessageDeflate: false })
    sockets.push(this)
  }
}
Object.assign(globalThis, { WebSocket: Cuttable })
if (process.argv[2] === 'noble') Object.assign(globalThis, { isSecureContext: false })

const store = new MemoryStore()
let hold: Hold = openHold({ store, origin: null })
let handle: SessionHandle | null = null
let seen = ''
let resyncs = 0
let notices: Notice[] = []
const decoder = new TextDecoder()

function session(): SessionHandle {
  if (!handle) throw new Error('no session is open')
  return handle
}

async function until<T>(what: string, look: () => T | null | undefined | false): Promise<T> {
  const deadline = Date.now() + 30_000
  for (;;) {
    const found = look()
    if (found) return found
    if (Date.now() > deadline)
      throw new Error(`waited for ${what}: ${JSON.stringify(handle?.link.value)} ${seen.slice(-500)}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

const commands: Record<string, (...args: never[]) => unknown> = {
  keys: () => hold.keys,
  join: (link: string, name: string) => hold.join(link, name),
  preview: (link: string) => hold.preview(link).relay,
  machines: () => hold.machines.value,
  machineOnline: () =>
    until('a machine', () => hold.machines.value.find(({ link }) => link === 'online')?.key),
  machineTrouble: () => until('trouble', () => hold.machines.value.find(({ trouble }) => trouble)?.trouble),
  sessions: () => hold.sessions.value.map(({ info, link }) => ({ name: info.name, state: info.state, link })),
  sessionNamed: (name: string) =>
    until(`session ${name}`, () => hold.sessions.value.find(({ info }) => info.name === name)?.info.id),
  lastLine: (name: string, text: string) => {
    const stop = hold.sessions.subscribe(() => undefined)
    const found = until(`last line ${text}`, () =>
      hold.sessions.value.find(({ info, lastLine }) => info.name === name && lastLine.includes(text)),
    )
    return found.then(({ lastLine }) => lastLine).finally(stop)
  },
  open: (machine: string, named: string, options: object) => {
    handle = hold.open(machine, named, options)
    seen = ''
    resyncs = 0
    notices = []
    handle.onNotice((notice) => notices.push(notice))
    handle.onOutput((bytes, kind) => {
      if (kind === 'resync') {
        seen = ''
        resyncs++
      }
      seen += decoder.decode(bytes, { stream: true })
    })
  },
  link: (at: string) => until(`link ${at}`, () => session().link.value.at === at && session().link.value),
  input: (text: string) => session().input(new TextEncoder().encode(text)),
  submit: (text: string, enter: boolean) => session().submit(text, enter),
  paste: (text: string) => session().paste(text),
  see: (text: string) => until(`output ${text}`, () => seen.includes(text)),
  seen: () => seen,
  count: (text: string) => seen.split(text).length - 1,
  resyncs: () => resyncs,
  notices: () => notices,
  noticed: (kind: string) => until(`notice ${kind}`, () => notices.find((notice) => notice.kind === kind)),
  settled: () => until('all input taken', () => session().inputPending.value === 0),
  pending: () => session().inputPending.value,
  rtt: () => session().rtt.value,
  info: () => session().info.value,
  state: (state: string) =>
    until(`state ${state}`, () => session().info.value?.state === state && session().info.value),
  turn: () => session().turn.value,
  holds: (yours: boolean) =>
    until(`the turn ${yours}`, () => session().turn.value?.yours === yours && session().turn.value),
  actors: () =>
    until(
      'actors',
      () => session().actors.value.length > 0 && session().actors.value.map(({ name }) => name),
    ),
  me: () => session().me.value?.name,
  rights: () => session().rights.value,
  observing: () => session().observing.value,
  observes: (only: boolean) => until(`observing ${only}`, () => session().observing.value === only),
  ask: (what: string, ...args: unknown[]) =>
    (session() as unknown as Record<string, (...args: unknown[]) => unknown>)[what]?.(...args),
  cut: () => {
    for (const socket of sockets) socket.terminate()
    sockets.length = 0
  },
  resync: () => session().resync(),
  closeHandle: () => session().close(),
  reload: () => {
    hold.close()
    hold = openHold({ store, origin: null })
    return until('ready', () => hold.ready.value)
  },
  /** Typed one key at a time, each when the one before was echoed: milliseconds of each. */
  typing: async (count: number) => {
    const times: number[] = []
    for (let at = 0; at < count; at++) {
      const before = seen.length
      const from = performance.now()
      const echoed = new Promise<void>((resolve) => {
        const stop = session().onOutput(() => {
          if (seen.length > before) {
            stop()
            resolve()
          }
        })
      })
      session().input(new TextEncoder().encode('abcdefghij'[at % 10]))
      await echoed
      times.push(performance.now() - from)
    }
    return times
  },
}

const lines = createInterface({ input: process.stdin })
for await (const line of lines) {
  const [name, ...args] = JSON.parse(line) as [string, ...never[]]
  let said: object
  try {
    said = { result: (await commands[name]?.(...args)) ?? null }
  } catch (error) {
    const { code, message, hint, retryable } = asHoldError(error)
    said = { error: { code, message, hint, retryable } }
  }
  process.stdout.write(`${JSON.stringify(said)}\n`)
}
process.exit(0)
