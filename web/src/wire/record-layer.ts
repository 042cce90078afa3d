// The record layer of a channel: messages to sealed records and back, in strict order.
//
//   record   AES-256-GCM of: 1 byte kind (top bit: the message goes on in the next record), body
//
// A record has no number on the wire: both ends count, and only the next one opens. Anything else ends the
// channel. Calls must not overlap: the caller keeps one queue for each direction.

import { concat, readU64, u64 } from './bytes'
import { TAG_BYTES } from './crypto'
import { asHoldError, broken, HoldError } from './errors'
import {
  CHANNEL_REKEY_BYTES,
  CHANNEL_REKEY_RECORDS,
  CHANNEL_RENEW_S,
  RecordKind,
  SNAPSHOT_MAX_BYTES,
} from './generated/constants'
import { Heartbeat } from './heartbeat'
import { type Cipher, NOISE_MESSAGE_MAX_BYTES } from './noise'

const BODY_MAX_BYTES = NOISE_MESSAGE_MAX_BYTES - TAG_BYTES - 1
const MORE = 0x80
const NOTHING = new Uint8Array(0)

const KINDS = new Set<number>(Object.values(RecordKind))
const OWN = new Set<number>([RecordKind.REKEY, RecordKind.ALIVE, RecordKind.FIN])

export interface Opened {
  kind: number
  body: Uint8Array
}

/** How much one key encrypts before the next one is used. Both ends must agree. */
interface Rekeying {
  records: number
  bytes: number
}

const REKEYING: Rekeying = { records: CHANNEL_REKEY_RECORDS, bytes: CHANNEL_REKEY_BYTES }

/** A cipher and how much went through it under its present key. */
class Direction {
  number = 0 // records so far, under all keys
  fin = false
  private records = 0
  private bytes = 0

  constructor(
    readonly cipher: Cipher,
    private readonly limits: Rekeying,
  ) {}

  get usedUp(): boolean {
    return this.records >= this.limits.records || this.bytes >= this.limits.bytes
  }

  passed(size: number): void {
    this.number++
    this.records++
    this.bytes += size
  }

  async rekey(): Promise<void> {
    this.number++
    this.records = this.bytes = 0
    await this.cipher.rekey()
  }
}

interface RecordLayerOptions {
  speaksFirst: boolean
  rekeying?: Rekeying
  messageMax?: number
}

/** One end of a channel. `hash` names the channel: both ends have the same, nobody else has. */
export class RecordLayer {
  private readonly out: Direction
  private readonly in: Direction
  private readonly live: Heartbeat
  private readonly since: number
  private readonly messageMax: number
  private parts: Uint8Array[] = []
  private partsBytes = 0
  private partKind = -1
  private failure: HoldError | null = null

  constructor(
    ciphers: [Cipher, Cipher],
    readonly hash: Uint8Array,
    now: number,
    options: RecordLayerOptions,
  ) {
    this.out = new Direction(ciphers[0], options.rekeying ?? REKEYING)
    this.in = new Direction(ciphers[1], options.rekeying ?? REKEYING)
    this.live = new Heartbeat(now, options.speaksFirst)
    this.since = now
    this.messageMax = options.messageMax ?? SNAPSHOT_MAX_BYTES
  }

  get peerFinished(): boolean {
    return this.in.fin
  }

  /** The records of one message, to be carried in this order. */
  async seal(kind: number, body: Uint8Array, now: number): Promise<Uint8Array[]> {
    this.checkUsable()
    const records: Uint8Array[] = []
    let rest = body
    while (rest.length > BODY_MAX_BYTES) {
      await this.put(kind | MORE, rest.subarray(0, BODY_MAX_BYTES), now, records)
      rest = rest.subarray(BODY_MAX_BYTES)
    }
    await this.put(kind, rest, now, records)
    return records
  }

  /** The record that closes our direction. */
  async finish(now: number): Promise<Uint8Array[]> {
    this.checkUsable()
    const records: Uint8Array[] = []
    await this.put(RecordKind.FIN, NOTHING, now, records)
    this.out.fin = true
    return records
  }

  /** The message that this record completes, or null. Any error is the end of the channel. */
  async open(record: Uint8Array, now: number): Promise<Opened | null> {
    if (this.failure) throw this.failure
    try {
      return await this.opened(record, now)
    } catch (error) {
      throw this.breaks(asHoldError(error))
    }
  }

  /** What is due at this time. Throws channel_broken when records were held back. */
  async poll(now: number): Promise<Uint8Array[]> {
    if (this.failure) throw this.failure
    if (this.in.fin && this.out.fin) return []
    if (!this.in.fin) {
      try {
        this.live.check(now)
      } catch (error) {
        throw this.breaks(asHoldError(error))
      }
    }
    const records: Uint8Array[] = []
    if (!this.out.fin && this.live.beatDue(now)) {
      await this.put(RecordKind.ALIVE, u64(this.in.number), now, records)
    }
    return records
  }

  wakeAt(): number {
    return this.live.wakeAt()
  }

  renewalDue(now: number): boolean {
    return now >= this.since + CHANNEL_RENEW_S
  }

  /** Nothing more goes through this channel; every later call says why. */
  breaks(error: HoldError): HoldError {
    this.failure ??= error
    return error
  }

  private checkUsable(): void {
    if (this.failure) throw this.failure
    if (this.out.fin) throw broken('this end has already closed the channel')
  }

  private async rekey(now: number, records: Uint8Array[]): Promise<void> {
    records.push(await this.out.cipher.seal(new Uint8Array([RecordKind.REKEY])))
    this.live.sent(now)
    await this.out.rekey()
  }

  private async put(kind: number, body: Uint8Array, now: number, records: Uint8Array[]): Promise<void> {
    if (this.out.usedUp) await this.rekey(now, records)
    const plain = new Uint8Array(body.length + 1)
    plain[0] = kind
    plain.set(body, 1)
    records.push(await this.out.cipher.seal(plain))
    this.live.sent(now)
    this.out.passed(plain.length)
  }

  private async opened(record: Uint8Array, now: number): Promise<Opened | null> {
    const arriving = this.in
    if (arriving.fin) throw broken('a record arrived after the peer closed the channel')
    const plain = record.length <= NOISE_MESSAGE_MAX_BYTES ? await arriving.cipher.open(record) : null
    if (plain === null || plain.length === 0) {
      throw broken(
        `record ${arriving.number + 1} is not the one the peer sent next: records were dropped, repeated, reordered or altered`,
      )
    }
    this.live.received(now)
    const first = plain[0] as number
    const kind = first & ~MORE
    if (!KINDS.has(kind)) throw broken(`unknown record kind ${kind}`)
    if (first === RecordKind.REKEY && plain.length === 1) {
      await arriving.rekey()
      return null
    }
    if (arriving.usedUp) throw broken('the peer still uses a key past its limit')
    arriving.passed(plain.length)
    if (!OWN.has(kind)) return this.whole(kind, (first & MORE) !== 0, plain)
    this.own(kind, plain)
    return null
  }

  /** The record layer's own kinds are one record each, of a fixed size. */
  private own(kind: number, plain: Uint8Array): void {
    if ((plain[0] as number) & MORE) throw broken(`a record of kind ${kind} cannot be continued`)
    if (kind === RecordKind.ALIVE && plain.length === 9) this.live.confirmed(readU64(plain, 1))
    else if (kind === RecordKind.FIN && plain.length === 1 && this.partKind < 0) this.in.fin = true
    else throw broken(`not a record of kind ${kind}`)
  }

  private whole(kind: number, more: boolean, plain: Uint8Array): Opened | null {
    const body = plain.subarray(1)
    if (this.partKind >= 0 && this.partKind !== kind) {
      throw broken('a message began before the previous one was complete')
    }
    if (!more && this.partKind < 0) return { kind, body }
    if (more && body.length !== BODY_MAX_BYTES) {
      throw broken('a message continues after a record that is not full')
    }
    if (this.partsBytes + body.length > this.messageMax) {
      throw broken(`a message is over the limit of ${this.messageMax} bytes`)
    }
    this.parts.push(body)
    this.partsBytes += body.length
    this.partKind = kind
    if (more) return null
    const message = concat(...this.parts)
    this.parts = []
    this.partsBytes = 0
    this.partKind = -1
    return { kind, body: message }
  }
}
