// What a relay says is checked, and what it has no room for waits.

import { beforeEach, expect, test, vi } from 'vitest'
import { nobleAgreement, nobleCrypto, nobleSigner } from '../src/hold/crypto-noble'
import { RelayLink } from '../src/hold/relay-link'
import { deviceText } from '../src/wire/device'
import { sessionIdOf } from '../src/wire/ids'
import { pack, unpackMap } from '../src/wire/msgpack'
import { sessionText } from '../src/wire/relay-messages'

const WINDOW = 100
const key = (byte: number) => nobleSigner(new Uint8Array(32).fill(byte))
const host = key(1)
const other = key(2)
const session = key(3)
const id = sessionIdOf(session.public)
const agreement = nobleAgreement(new Uint8Array(32).fill(4))

type Message = Record<string, unknown> & { t: string }

/** A relay at the other end of a WebSocket that is none. */
class FakeSocket {
  static latest: FakeSocket
  static answer: (message: Message, relay: FakeSocket) => void = () => undefined
  readyState = 0
  binaryType = ''
  said: Message[] = []
  onopen: () => void = () => undefined
  onmessage: (event: { data: ArrayBuffer }) => void = () => undefined
  onclose: (event: { code: number; reason: string }) => void = () => undefined
  onerror: () => void = () => undefined

  constructor() {
    FakeSocket.latest = this
    queueMicrotask(() => {
      this.readyState = 1
      this.onopen()
    })
  }

  send(data: Uint8Array): void {
    const message = unpackMap(data.slice())
    this.said.push(message)
    if (message.t === 'greet') {
      const sizes = { frame_max_bytes: 1, stream_window_bytes: WINDOW, broadcast_window_bytes: 1 }
      this.say({ t: 'greeted', version: 1, ...sizes })
    } else {
      FakeSocket.answer(message, this)
    }
  }

  say(message: object): void {
    queueMicrotask(() => this.onmessage({ data: pack(message).slice().buffer as ArrayBuffer }))
  }

  close(): void {
    this.readyState = 3
  }
}

/** What a relay says of who is at the other end, true unless it is set to lie. */
async function opened(by = host, lie: object = {}): Promise<object> {
  const text = deviceText(by.public, agreement.public)
  return {
    t: 'opened',
    stream: 7,
    host: by.public,
    epoch: 2,
    static: agreement.public,
    binding: await by.sign(text),
    ...lie,
  }
}

function answering(answer: object): void {
  FakeSocket.answer = (message, relay) => {
    if (message.t === 'open') relay.say({ id: message.id, ...answer })
  }
}

const connected = () => RelayLink.connect(nobleCrypto, 'http://relay.example')
const code = (doing: Promise<unknown>) =>
  doing.then(
    () => '',
    (error: { code: string }) => error.code,
  )

beforeEach(() => {
  Object.assign(globalThis, { WebSocket: FakeSocket })
})

test('a stream leads to the host that was asked for', async () => {
  const link = await connected()
  answering(await opened())
  expect((await link.open(host.public, null)).host.key).toEqual(host.public)
})

test('another host in its place is refused', async () => {
  const link = await connected()
  answering(await opened(other))
  expect(await code(link.open(host.public, null))).toBe('bad_signature')
  expect(FakeSocket.latest.said.at(-1)?.t).toBe('close')
})

test('a channel key that the host did not sign is refused', async () => {
  const link = await connected()
  answering(await opened(host, { static: nobleAgreement(new Uint8Array(32).fill(5)).public }))
  expect(await code(link.open(host.public, null))).toBe('bad_signature')
})

test("a session may have moved to a host that the session's own key vouches for, and to no other", async () => {
  const link = await connected()
  const vouched = await session.sign(sessionText(id, other.public, 2))
  answering(await opened(other, { session_key: session.public, vouched }))
  expect((await link.open(host.public, id)).host.key).toEqual(other.public)
  answering(await opened(other, { session_key: session.public, vouched, epoch: 3 }))
  expect(await code(link.open(host.public, id))).toBe('bad_signature')
  answering(await opened(other, { session_key: host.public, vouched }))
  expect(await code(link.open(host.public, id))).toBe('bad_signature')
})

test('no more is sent than the relay has room for, and in order', async () => {
  const link = await connected()
  answering(await opened())
  const stream = await link.open(host.public, null)
  const sizes = () =>
    FakeSocket.latest.said.filter(({ t }) => t === 'data').map(({ data }) => (data as Uint8Array).length)
  for (const size of [60, 50, 10]) stream.send(new Uint8Array(size))
  expect(sizes()).toEqual([60]) // not the last one either, though it would fit
  stream.maySend(60)
  expect(sizes()).toEqual([60, 50, 10])
})

test('a refusal rejects its request, and the connection continues', async () => {
  const link = await connected()
  answering({ t: 'failed', code: 'host_down', message: 'not here' })
  expect(await code(link.open(host.public, null))).toBe('host_down')
  answering(await opened())
  await link.open(host.public, null)
})

test('everything that is open is notified when the connection is lost', async () => {
  const link = await connected()
  answering(await opened())
  const stream = await link.open(host.public, null)
  const told: string[] = []
  stream.onClosed = () => told.push('stream')
  link.onLost = ({ code }) => told.push(code)
  FakeSocket.answer = () => undefined
  const waiting = code(link.open(host.public, null))
  FakeSocket.latest.onclose({ code: 1006, reason: '' })
  expect(await waiting).toBe('relay_unreachable')
  expect(told).toEqual(['stream', 'relay_unreachable'])
})

test('what is not the protocol ends the connection', async () => {
  const link = await connected()
  FakeSocket.latest.say({ t: 'challenge' })
  await new Promise((resolve) => setTimeout(resolve))
  expect(FakeSocket.latest.readyState).toBe(3)
  void link
})

test('a relay that is about to end is left long before it does, but not in the middle of something', async () => {
  vi.useFakeTimers()
  try {
    const link = await connected()
    let left = false
    link.onLeave = () => (left = true)
    answering(await opened())
    const stream = await link.open(host.public, null)
    FakeSocket.latest.say({ t: 'going_away', within_s: 10 })
    for (let tenth = 0; tenth < 20; tenth += 1) {
      stream.send(new Uint8Array(1))
      await vi.advanceTimersByTimeAsync(100)
      expect(left).toBe(false)
    }
    await vi.advanceTimersByTimeAsync(500)
    expect(left).toBe(true)
  } finally {
    vi.useRealTimers()
  }
})
