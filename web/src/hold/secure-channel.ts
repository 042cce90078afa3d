// One end-to-end channel to a host, over a stream through a relay: the operator's end, with its timers and one queue per
// direction for its asynchronous steps. The messages are the caller's.

import { concat, hex } from '../wire/bytes'
import { OperatorHandshake, type OperatorChannel } from '../wire/channel'
import { asHoldError, broken, handshakeFailed, type HoldError } from '../wire/errors'
import type { EpochFloor } from '../wire/epoch-floor'
import { encodeOpening, type Opening } from '../wire/ids'
import type { Opened } from '../wire/record-layer'
import { within } from './backoff'
import { type DeviceKeys, random } from './device-keys'
import { now, TaskQueue } from './task-queue'
import type { Stream } from './relay-link'

const HANDSHAKE_S = 10
const LAST_WORDS_MS = 50

export class SecureChannel {
  onSaid: (said: Opened) => void | Promise<void> = () => undefined
  onEnd: (why: HoldError) => void = () => undefined
  over = false
  private readonly sending = new TaskQueue((error) => this.end(asHoldError(error)))
  private readonly receiving = new TaskQueue((error) => this.end(asHoldError(error)))
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    readonly stream: Stream,
    private readonly channel: OperatorChannel,
    readonly floor: EpochFloor,
  ) {
    stream.onData = (record) => this.receiving.run(() => this.record(record))
    stream.onClosed = (why) =>
      // After what arrived before: the host's last message may be the reason.
      this.receiving.run(() => this.end(broken(`the connection to the host was lost: ${why}`)))
    this.beat()
  }

  get epoch(): number {
    return this.channel.epoch
  }

  /** One message of the protocol. */
  send(body: Uint8Array, signed: boolean): void {
    this.sending.run(async () => {
      if (this.over) return
      this.put(signed ? await this.channel.write(body, now()) : await this.channel.say(body, now()))
    })
  }

  /** Sends nothing more. */
  close(): void {
    if (this.over) return
    this.sending.run(async () => {
      try {
        this.put(await this.channel.recordLayer.finish(now()))
      } catch {
        // It was already closed.
      }
      setTimeout(() => this.stream.close(), LAST_WORDS_MS)
    })
    this.stop()
  }

  private put(records: Uint8Array[]): void {
    for (const record of records) this.stream.send(record)
  }

  private async record(record: Uint8Array): Promise<void> {
    if (this.over) return
    const said = await this.channel.receive(record, now())
    if (said !== null) await this.onSaid(said)
    if (this.channel.recordLayer.peerFinished) throw broken('the host closed the channel')
    // Timers of a page in the background are late by up to a minute; received records are not.
    if (now() >= this.channel.recordLayer.wakeAt()) this.beat()
  }

  /** What is due by the clock. */
  private beat(): void {
    this.sending.run(async () => {
      if (this.over) return
      const { recordLayer } = this.channel
      this.put(await recordLayer.poll(now()))
      if (recordLayer.renewalDue(now())) {
        // The caller reconnects at once, through a channel with new keys.
        this.close()
        this.onEnd(broken('the channel is being renewed'))
        return
      }
      clearTimeout(this.timer)
      this.timer = setTimeout(() => this.beat(), Math.max(0, recordLayer.wakeAt() - now()) * 1000)
    })
  }

  private stop(): void {
    this.over = true
    clearTimeout(this.timer)
  }

  private end(error: HoldError): void {
    if (this.over) return
    this.stop()
    this.stream.close()
    this.onEnd(error)
  }
}

interface DialOptions {
  opening: Opening
  session: string // what inputs are signed for: the session, or what stands for the host
  floor: EpochFloor
  grant?: Uint8Array
  psk?: Uint8Array
  prologue?: Uint8Array
}

/** The channel over this stream, made with the host that the stream leads to. */
export async function dial(keys: DeviceKeys, stream: Stream, options: DialOptions): Promise<SecureChannel> {
  let answer: (message: Uint8Array) => void = () => undefined
  let refused: (why: HoldError) => void = () => undefined
  const answered = new Promise<Uint8Array>((resolve, reject) => {
    answer = resolve
    refused = reject
  })
  answered.catch(() => undefined) // it may come before anybody waits for it
  stream.onData = (data) => answer(data)
  stream.onClosed = (why) =>
    refused(handshakeFailed(`the host did not answer: ${why}`, 'was this device revoked?'))
  try {
    const dialling = await OperatorHandshake.begin(keys.crypto, {
      session: options.session,
      stream: hex(random(16)),
      signer: keys.signer,
      me: keys.device,
      static: keys.agreement,
      ephemeral: await keys.ephemeral(),
      host: stream.host,
      floor: options.floor,
      ...(options.grant ? { grant: options.grant } : {}),
      ...(options.psk ? { psk: options.psk } : {}),
      ...(options.prologue ? { prologue: options.prologue } : {}),
    })
    stream.send(concat(encodeOpening(options.opening), await dialling.first()))
    const message = await within(HANDSHAKE_S, answered, () =>
      handshakeFailed('the host did not answer in time'),
    )
    return new SecureChannel(stream, await dialling.finish(message, now()), options.floor)
  } catch (error) {
    stream.close()
    throw error
  }
}
