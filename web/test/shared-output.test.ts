// Output that comes by two ways: every byte once, in order, or a new screen.

import { describe, expect, test } from 'vitest'
import { concat, domain, u64, utf8 } from '../src/wire/bytes'
import { nonceOf, sha256 } from '../src/wire/crypto'
import { EpochFloor } from '../src/wire/epoch-floor'
import { type OutputMessage, SharedOutput } from '../src/wire/shared-output'
import { nobleCrypto, nobleSigner } from '../src/hold/crypto-noble'

const SESSION = 'frdfh6xg05fm6gcx3c6m7k36pf'
const signer = nobleSigner(new Uint8Array(32).fill(7))

/** A host's end: frames of one session under one key. */
class Host {
  private seq = 100
  private head = sha256(utf8('any'))
  private readonly key = new Uint8Array(32).fill(9)
  private group = 1

  outputKey(begins = true): Uint8Array {
    return concat(
      new Uint8Array([begins ? 1 : 0]),
      u64(1),
      u64(this.group).subarray(4),
      u64(this.seq),
      this.key,
      this.head,
    )
  }

  async frame(offset: number, text: string, by = signer): Promise<Uint8Array> {
    const data = concat(u64(offset), utf8(text))
    const header = concat(new Uint8Array([1]), u64(1), u64(this.group).subarray(4), u64(this.seq))
    this.head = sha256(concat(domain('holdfast output chain v1'), this.head, header, sha256(data)))
    const text_ = concat(domain('holdfast output signature v1'), utf8(SESSION), header, this.head)
    const aead = await nobleCrypto.aead(this.key)
    const bound = concat(domain('holdfast output v1'), utf8(SESSION), header)
    const recordLayer = await aead.seal(nonceOf(this.seq++), concat(await by.sign(text_), data), bound)
    return concat(header, recordLayer)
  }
}

function reader(since: number | null = 0) {
  const shown: string[] = []
  let anew = 0
  const output = new SharedOutput({
    crypto: nobleCrypto,
    session: SESSION,
    channel: 1,
    hostKey: signer.public,
    floor: new EpochFloor(1),
    since,
    forward: (message: OutputMessage) => {
      if (message.t === 'output') shown.push(`${message.offset}:${new TextDecoder().decode(message.data)}`)
      else shown.push(message.t)
    },
    restart: () => anew++,
  })
  return { output, shown, asked: () => anew }
}

const own = (offset: number, text: string): OutputMessage => ({
  t: 'output',
  channel: 1,
  offset,
  data: utf8(text),
})
const screen = (offset: number): OutputMessage => {
  return { t: 'resync', channel: 1, offset, size: { cols: 80, rows: 24 }, skipped: 0, data: utf8('S') }
}
const closed: OutputMessage = {
  t: 'closed',
  channel: 1,
  ending: { code: 0, signal: null, lost: null, cause: null, successor: '', checkpoint: '', moved_to: '' },
}

test('frames take over exactly where the host says', async () => {
  const { output, shown } = reader()
  const host = new Host()
  output.message(own(0, 'abc'))
  await output.key(host.outputKey(), 0)
  output.shared(3)
  await output.frame(await host.frame(3, 'def'), 0)
  expect(shown).toEqual(['0:abc', '3:def'])
})

test('frames that come early wait, and what was shown already is cut off', async () => {
  const { output, shown } = reader()
  const host = new Host()
  const key = host.outputKey()
  const first = await host.frame(1, 'bcd')
  await output.frame(first, 0) // before its key
  await output.key(key, 0)
  output.shared(3)
  output.message(own(0, 'ab'))
  expect(shown).toEqual(['0:ab', '2:cd'])
})

test('the end comes behind the last frame, whichever way is quicker', async () => {
  const { output, shown } = reader()
  const host = new Host()
  await output.key(host.outputKey(), 0)
  output.shared(0)
  output.message(own(5, ''))
  output.message(closed)
  expect(shown).toEqual([])
  await output.frame(await host.frame(0, 'hello'), 0)
  expect(shown).toEqual(['0:hello', 'closed'])
})

describe('a new screen is asked for', () => {
  async function begun() {
    const all = { ...reader(), host: new Host() }
    await all.output.key(all.host.outputKey(), 0)
    all.output.shared(0)
    return all
  }

  test('when a frame is missing', async () => {
    const { output, shown, host, asked } = await begun()
    await host.frame(0, 'lost')
    await output.frame(await host.frame(4, 'next'), 0)
    expect([shown, asked()]).toEqual([[], 1])
    output.message(screen(8))
    await output.key(host.outputKey(), 0)
    output.shared(8)
    await output.frame(await host.frame(8, 'more'), 0)
    expect(shown).toEqual(['resync', '8:more'])
  })

  test('when a frame was made by another reader', async () => {
    const { output, shown, host, asked } = await begun()
    await output.frame(await host.frame(0, 'forged', nobleSigner(new Uint8Array(32).fill(8))), 0)
    expect([shown, asked()]).toEqual([[], 1])
  })

  test('once, however much more is missed meanwhile, and again if it was spoiled', async () => {
    const { output, host, asked } = await begun()
    output.startOver()
    output.startOver()
    expect(asked()).toBe(1)
    output.shared(4)
    expect(asked()).toBe(2)
    await output.key(host.outputKey(), 0)
    output.shared(4)
    expect(asked()).toBe(2)
  })

  test('when frames were promised and held back', async () => {
    const { output, host, asked } = await begun()
    const mark = (seq: number) => concat(u64(1), u64(seq), new Uint8Array(32))
    output.mark(mark(110), 0)
    output.mark(mark(110), 14)
    expect(asked()).toBe(0)
    output.mark(mark(110), 15)
    expect(asked()).toBe(1)
    void host
  })
})

test('frames that are not for this reader change nothing', async () => {
  const { output, shown, asked } = reader()
  const host = new Host()
  await output.key(host.outputKey(), 0)
  output.shared(0)
  const frame = await host.frame(0, 'good')
  const altered = frame.slice()
  altered[altered.length - 1]! ^= 1
  await output.frame(altered, 0)
  await output.frame(frame, 0)
  await output.frame(frame, 0)
  expect([shown, asked()]).toEqual([['0:good'], 0])
})
