// The channel against docs/channel-vectors.json, with both ways to do the arithmetic.

import { describe, expect, test } from 'vitest'
import { hex, unhex } from '../src/wire/bytes'
import { OperatorHandshake, channelPrologue, type OperatorChannel } from '../src/wire/channel'
import type { Device } from '../src/wire/device'
import { checkDevice, deviceText } from '../src/wire/device'
import type { HoldError } from '../src/wire/errors'
import { EpochFloor } from '../src/wire/epoch-floor'
import { BroadcastListener } from '../src/wire/broadcast-listener'
import { Cipher, Handshake, IK, IK_PSK1 } from '../src/wire/noise'
import { RecordLayer } from '../src/wire/record-layer'
import { InputChain } from '../src/wire/signed-input'
import { type Json, vectors, WAYS, type Way } from './vectors'

const known = vectors('channel')

function device(of: Json): Device {
  return { key: unhex(of.key), static: unhex(of.static), signature: unhex(of.signature) }
}

async function codeOf(doing: Promise<unknown>): Promise<string> {
  try {
    await doing
  } catch (error) {
    return (error as HoldError).code
  }
  return ''
}

async function dialling(
  way: Way,
  psk: boolean,
  floor = new EpochFloor(known.seen_epoch),
): Promise<OperatorHandshake> {
  return OperatorHandshake.begin(way.crypto, {
    session: known.session,
    stream: known.stream,
    signer: await way.signer(known.operator.seed),
    me: device(known.operator),
    static: await way.agreement(known.operator.static_private),
    ephemeral: await way.agreement(known.operator.ephemeral_private),
    host: device(known.host),
    floor,
    grant: unhex(known.grant),
    ...(psk ? { psk: unhex(known.psk) } : {}),
  })
}

describe.each(WAYS)('with $crypto.kind', (way) => {
  test('a device is vouched for by its own key, and by no other', async () => {
    for (const of of [known.host, known.operator]) {
      expect(hex(deviceText(unhex(of.key), unhex(of.static)))).toBe(of.device_text)
      expect(hex(await (await way.signer(of.seed)).sign(unhex(of.device_text)))).toBe(of.signature)
      await checkDevice(way.crypto, device(of))
    }
    const mixed = { ...device(known.host), static: unhex(known.operator.static) }
    expect(await codeOf(checkDevice(way.crypto, mixed))).toBe('bad_signature')
  })

  test.each([0, 1])('handshake %i is byte for byte the one of the vectors', async (index) => {
    const wanted = known.handshakes[index]
    const floor = new EpochFloor(known.seen_epoch)
    const dial = await dialling(way, index === 1, floor)
    expect(hex(channelPrologue(known.session))).toBe(wanted.prologue)
    expect(hex(await dial.first())).toBe(wanted.first)
    const channel = await dial.finish(unhex(wanted.second), 0)
    expect(hex(channel.recordLayer.hash)).toBe(wanted.h)
    expect(channel.epoch).toBe(known.epoch)
    expect(floor.highest).toBe(known.epoch)
  })

  test.each([0, 1])('a host reads handshake %i and makes the same keys', async (index) => {
    const wanted = known.handshakes[index]
    const host = new Handshake(way.crypto, index ? IK_PSK1 : IK, {
      initiator: false,
      static: await way.agreement(known.host.static_private),
      ephemeral: await way.agreement(known.host.ephemeral_private),
      prologue: unhex(wanted.prologue),
      ...(index ? { psk: unhex(known.psk) } : {}),
    })
    expect(hex(await host.read(unhex(wanted.first).subarray(1)))).toBe(wanted.first_payload)
    expect(hex(await host.write(unhex(wanted.second_payload)))).toBe(wanted.second)
    const [sending, receiving] = host.splitKeys()
    expect([hex(receiving), hex(sending)]).toEqual([wanted.to_host, wanted.to_operator])
  })

  test('an answer of an epoch that is over is fenced', async () => {
    const floor = new EpochFloor(known.seen_epoch)
    const dial = await dialling(way, false, floor)
    await dial.first()
    floor.rise(known.epoch + 1)
    expect(await codeOf(dial.finish(unhex(known.handshakes[0].second), 0))).toBe('fenced')
  })

  test('an altered answer ends the handshake', async () => {
    const dial = await dialling(way, false)
    await dial.first()
    const second = unhex(known.handshakes[0].second)
    second[40]! ^= 1
    expect(await codeOf(dial.finish(second, 0))).toBe('handshake_failed')
    expect(await codeOf(dial.finish(unhex(known.handshakes[0].second), 0))).toBe('handshake_failed')
  })

  test('a key that makes the secret known beforehand is refused', async () => {
    const pair = await way.agreement(known.operator.static_private)
    expect(await codeOf(Promise.resolve().then(() => pair.agree(new Uint8Array(32))))).toBe(
      'handshake_failed',
    )
    const one = new Uint8Array(32)
    one[0] = 1
    expect(await codeOf(Promise.resolve().then(() => pair.agree(one)))).toBe('handshake_failed')
  })

  async function ends(): Promise<{ operator: RecordLayer; host: RecordLayer }> {
    const { to_host, to_operator, h } = known.handshakes[0]
    const rekeying = { records: 3, bytes: 1 << 26 } // as the vectors have it
    const pair = async (first: string, second: string): Promise<[Cipher, Cipher]> => [
      await Cipher.of(way.crypto, unhex(first)),
      await Cipher.of(way.crypto, unhex(second)),
    ]
    return {
      operator: new RecordLayer(await pair(to_host, to_operator), unhex(h), 0, {
        speaksFirst: true,
        rekeying,
      }),
      host: new RecordLayer(await pair(to_operator, to_host), unhex(h), 0, { speaksFirst: false, rekeying }),
    }
  }

  test('every record of the vectors opens at its end, and only in its place', async () => {
    const { operator, host } = await ends()
    for (const [at, step] of known.records.entries()) {
      const end = step.direction === 'to_host' ? host : operator
      // An ALIVE confirms records that this test did not send.
      for (const other of [host, operator]) {
        const live = (other as unknown as { live: { sentCount: number } }).live
        live.sentCount = Math.max(live.sentCount, 1000)
      }
      const opened = await end.open(unhex(step.record), 0)
      if (opened) {
        expect(hex(new Uint8Array([opened.kind, ...opened.body])), `record ${at}`).toBe(step.plain)
      }
    }
    expect(await codeOf(host.open(unhex(known.records[0].record), 0))).toBe('channel_broken')
  })

  test('the operator seals the very records of the vectors', async () => {
    const { operator } = await ends()
    const sent: string[] = []
    for (const step of known.records.filter((each: Json) => each.direction === 'to_host')) {
      if (step.kind === 'REKEY') continue // comes by itself, when the key is used up
      const body = unhex(step.plain).subarray(1)
      const kind = unhex(step.plain)[0]!
      const records = step.kind === 'FIN' ? await operator.finish(0) : await operator.seal(kind, body, 0)
      sent.push(...records.map(hex))
    }
    expect(sent).toEqual(
      known.records.filter((each: Json) => each.direction === 'to_host').map((each: Json) => each.record),
    )
  })

  test('inputs are signed and chained as in the vectors', async () => {
    const signer = await way.signer(known.operator.seed)
    const place = {
      session: known.session,
      epoch: known.epoch,
      channel: unhex(known.handshakes[0].h),
      stream: known.stream,
    }
    const chain = new InputChain(signer, place)
    expect(hex(chain.mark.head)).toBe(known.genesis)
    for (const wanted of known.inputs) {
      expect(hex(await chain.sign(unhex(wanted.payload)))).toBe(wanted.body)
      expect(hex(chain.mark.head)).toBe(wanted.after)
    }
  })

  async function listen(before: number): Promise<BroadcastListener> {
    const listener = new BroadcastListener(
      way.crypto,
      known.session,
      unhex(known.host.key),
      new EpochFloor(known.epoch),
    )
    for (const step of known.output.steps.slice(0, before)) await take(listener, step)
    return listener
  }

  async function take(listener: BroadcastListener, step: Json): Promise<Json> {
    if (step.what === 'key') await listener.takeKey(unhex(step.bytes), 0)
    else if (step.what === 'mark') listener.mark(unhex(step.bytes), 0)
    else return listener.open(unhex(step.bytes), 0)
    return null
  }

  test('a reader finds in the output what the vectors say', async () => {
    const listener = await listen(0)
    for (const step of known.output.steps) {
      const frame = await take(listener, step)
      if (frame) {
        expect(frame.seq).toBe(step.seq)
        expect(hex(frame.data)).toBe(step.data)
        expect(frame.provisional).toBe(step.provisional)
      }
      expect(listener.settled).toBe(step.settled)
    }
  })

  test.each(known.refused.filter((each: Json) => each.what !== 'first') as Json[])(
    'refused: $why ($what)',
    async (wanted: Json) => {
      if (wanted.what === 'record') {
        const { operator, host } = await ends()
        const before = known.records.slice(0, wanted.at)
        for (const other of [host, operator]) {
          ;(other as unknown as { live: { sentCount: number } }).live.sentCount = 1000
        }
        for (const step of before)
          await (step.direction === 'to_host' ? host : operator).open(unhex(step.record), 0)
        const end = known.records[wanted.at].direction === 'to_host' ? host : operator
        expect(await codeOf(end.open(unhex(wanted.bytes), 0))).toBe(wanted.error)
        return
      }
      const listener = await listen(wanted.at)
      const step = { what: wanted.what, bytes: wanted.bytes }
      expect(await codeOf(take(listener, step))).toBe(wanted.error)
    },
  )
})

test('a message longer than a record comes out as it went in, with other records between its parts', async () => {
  const way = WAYS[0]!
  const { to_host, to_operator, h } = known.handshakes[0]
  const cipher = (key: string) => Cipher.of(way.crypto, unhex(key))
  const one = new RecordLayer([await cipher(to_host), await cipher(to_operator)], unhex(h), 0, {
    speaksFirst: true,
  })
  const other = new RecordLayer([await cipher(to_operator), await cipher(to_host)], unhex(h), 0, {
    speaksFirst: false,
  })
  const long = new Uint8Array(200_000).map((_, at) => at % 251)
  const records = await one.seal(20, long, 0)
  expect(records.length).toBe(4)
  let got: Uint8Array | undefined
  for (const record of records) got = (await other.open(record, 0))?.body
  expect(got && hex(got) === hex(long)).toBe(true)
})

test('an end that hears nothing, or whose records are not confirmed, is broken', async () => {
  const dial = await dialling(WAYS[0]!, false)
  await dial.first()
  const channel: OperatorChannel = await dial.finish(unhex(known.handshakes[0].second), 100)
  expect((await channel.recordLayer.poll(100)).length).toBe(1) // the first beat, at once
  expect((await channel.recordLayer.poll(104)).length).toBe(0)
  expect((await channel.recordLayer.poll(105)).length).toBe(1)
  expect(await codeOf(channel.recordLayer.poll(115))).toBe('channel_broken')
})
