// Output as one operator reads it: only the host's frames, each once, in order, none left out.
//
//   frame    header: 1 byte form (1: signed), 8 bytes epoch, 4 bytes group epoch, 8 bytes number;
//            then AES-256-GCM of [64 bytes signature], data; bound to session and header
//
// A frame that does not fit is refused and changes nothing. A real frame that comes too early means that others are
// missing: then the reader is lost until the host says where to continue. Unsigned frames are provisional until the next
// signed one, or a mark that comes over the operator's own channel. Calls must not overlap.

import { concat, domain, equal, readU32, readU64, utf8 } from './bytes'
import { KEY_BYTES, nonceOf, sha256, SIGNATURE_BYTES, type Aead, type Crypto } from './crypto'
import { broken, HoldError, refusedFrame } from './errors'
import type { EpochFloor } from './epoch-floor'
import { CHANNEL_PATIENCE_S, OUTPUT_UNSIGNED_FRAMES } from './generated/constants'

const FRAME_DOMAIN = domain('holdfast output v1')
const CHAIN_DOMAIN = domain('holdfast output chain v1')
const SIGNATURE_DOMAIN = domain('holdfast output signature v1')
const HEADER_BYTES = 21
const MARK_BYTES = 8 + 8 + 32
const KEYS_MAX = 256 // announced ahead of frames on their way; with more, the reader starts over
const SIGNED = 1

interface OutputKey {
  begins: boolean
  epoch: number
  group: number
  seq: number
  key: Uint8Array
  head: Uint8Array
}

interface OutputMark {
  epoch: number
  seq: number
  head: Uint8Array
}

interface Frame {
  seq: number
  data: Uint8Array
  provisional: boolean
  settled: number // every frame with a smaller number than this is the host's
}

function decodeOutputKey(body: Uint8Array): OutputKey {
  if (body.length !== HEADER_BYTES + KEY_BYTES + 32 || (body[0] as number) > 1)
    throw broken('not a sender key')
  return {
    begins: body[0] === 1,
    epoch: readU64(body, 1),
    group: readU32(body, 9),
    seq: readU64(body, 13),
    key: body.slice(21, 53),
    head: body.slice(53, 85),
  }
}

function decodeOutputMark(body: Uint8Array): OutputMark {
  if (body.length !== MARK_BYTES) throw broken('not a mark of the output')
  return { epoch: readU64(body, 0), seq: readU64(body, 8), head: body.slice(16, 48) }
}

const gap = (message: string) => new HoldError('output_gap', message)

export class BroadcastListener {
  private epoch = -1
  private seq = 0
  private head: Uint8Array = new Uint8Array(0)
  private readonly keys = new Map<number, { announced: OutputKey; aead: Aead }>() // by group epoch
  private newestGroup = -1
  settled = 0
  private provisionalSince = 0
  private waitingMark: { announced: OutputMark; since: number } | null = null
  private failure: HoldError | null = gap('the host has not said where to begin')
  private readonly bound: Uint8Array
  private readonly session: Uint8Array

  constructor(
    private readonly crypto: Crypto,
    session: string,
    private readonly hostKey: Uint8Array,
    private readonly floor: EpochFloor,
  ) {
    this.session = utf8(session)
    this.bound = concat(FRAME_DOMAIN, this.session)
  }

  /** Whether the host must say where to continue. */
  get lost(): boolean {
    return this.failure !== null
  }

  /** Whether it is under a key that may still come: keys and frames take different ways. */
  isEarly(frame: Uint8Array): boolean {
    if (this.failure || frame.length < HEADER_BYTES) return this.failure !== null
    return readU32(frame, 9) > this.newestGroup
  }

  /** A sender key came over our own channel. */
  async takeKey(body: Uint8Array, now: number): Promise<void> {
    const announced = decodeOutputKey(body)
    this.floor.rise(announced.epoch)
    const same = announced.epoch === this.epoch
    if (same && (announced.seq < this.seq || announced.group < this.newestGroup)) {
      throw refusedFrame("the host's output goes back to an earlier position")
    }
    if (announced.begins || !same) {
      this.epoch = announced.epoch
      this.seq = this.settled = announced.seq
      this.head = announced.head
      this.keys.clear()
      await this.keep(announced)
      this.waitingMark = this.failure = null
      return
    }
    if (this.failure) return // the key comes again with the place to go on from
    if (this.keys.has(announced.group)) throw refusedFrame('a sender key was sent twice')
    for (const [group, { announced: known }] of this.keys) {
      // A key that no frame was sent under, or whose frames are all here, is not needed.
      if (!(known.seq < announced.seq && this.seq < announced.seq)) this.keys.delete(group)
    }
    await this.keep(announced)
    if (this.keys.size > KEYS_MAX) throw this.fail(gap(`frames from ${this.seq} on did not come`))
    this.applyMark({ epoch: announced.epoch, seq: announced.seq, head: announced.head }, now)
  }

  /** The next frame. */
  async open(frame: Uint8Array, now: number): Promise<Frame> {
    if (frame.length < HEADER_BYTES) throw refusedFrame('a frame of output is truncated')
    const form = frame[0] as number
    const epoch = readU64(frame, 1)
    const group = readU32(frame, 9)
    const seq = readU64(frame, 13)
    this.floor.check(epoch)
    if (this.failure) throw this.failure
    const known = this.keys.get(group)
    if (epoch !== this.epoch || known === undefined || form > SIGNED) {
      throw refusedFrame('a frame is encrypted with a key that this operator does not have')
    }
    if (seq < this.seq) throw refusedFrame(`frame ${seq} was already received`)
    const header = frame.subarray(0, HEADER_BYTES)
    const plain = await known.aead.open(
      nonceOf(seq),
      frame.subarray(HEADER_BYTES),
      concat(this.bound, header),
    )
    if (plain === null || (form === SIGNED && plain.length < SIGNATURE_BYTES) || seq < known.announced.seq) {
      throw refusedFrame(`frame ${seq} was altered or does not belong to this session's output`)
    }
    if (seq > this.seq) throw this.fail(gap(`frames ${this.seq} to ${seq - 1} are missing`))
    return this.next(form === SIGNED, known.announced, header, plain, now)
  }

  /** The host says over our own channel how far the output has gone. */
  mark(body: Uint8Array, now: number): void {
    const announced = decodeOutputMark(body)
    this.floor.check(announced.epoch)
    if (announced.epoch === this.epoch && !this.failure) this.applyMark(announced, now)
  }

  /** output_gap when frames were held back; bad_signature when some were never signed. */
  poll(now: number): void {
    if (this.failure) return
    if (this.waitingMark && now >= this.waitingMark.since + CHANNEL_PATIENCE_S) {
      throw this.fail(gap(`frames from ${this.seq} on were held back`))
    }
    if (this.settled < this.seq && now >= this.provisionalSince + CHANNEL_PATIENCE_S) {
      throw this.fail(new HoldError('bad_signature', 'the host does not sign its output'))
    }
  }

  /** What was read is of no use: nothing fits until the host says where to continue. */
  giveUp(): void {
    this.fail(gap('the output starts over'))
  }

  private async keep(announced: OutputKey): Promise<void> {
    this.keys.set(announced.group, { announced, aead: await this.crypto.aead(announced.key) })
    this.newestGroup = announced.group
  }

  /** A frame sealed with the right key and number. If it is the host's, the chain says. */
  private async next(
    isSigned: boolean,
    announced: OutputKey,
    header: Uint8Array,
    plain: Uint8Array,
    now: number,
  ): Promise<Frame> {
    if (this.seq === announced.seq && !equal(this.head, announced.head)) throw this.forged()
    const data = isSigned ? plain.subarray(SIGNATURE_BYTES) : plain
    const head = sha256(concat(CHAIN_DOMAIN, this.head, header, await this.crypto.digest(data)))
    if (isSigned) {
      const text = concat(SIGNATURE_DOMAIN, this.session, header, head)
      if (!(await this.crypto.verify(this.hostKey, text, plain.subarray(0, SIGNATURE_BYTES))))
        throw this.forged()
    } else if (this.seq + 1 - this.settled >= OUTPUT_UNSIGNED_FRAMES) {
      throw this.fail(new HoldError('bad_signature', 'the host does not sign its output'))
    }
    if (this.settled === this.seq) this.provisionalSince = now
    const at = this.seq++
    this.head = head
    for (const group of this.keys.keys()) if (group < announced.group) this.keys.delete(group)
    if (isSigned) this.settled = this.seq
    if (this.waitingMark) this.applyMark(this.waitingMark.announced, now)
    return { seq: at, data, provisional: !isSigned && this.settled <= at, settled: this.settled }
  }

  /** The host itself has said what the head is at some place. */
  private applyMark(announced: OutputMark, now: number): void {
    if (announced.seq > this.seq) {
      this.waitingMark ??= { announced, since: now } // the frames may be on their way
    } else if (announced.seq === this.seq) {
      if (!equal(announced.head, this.head)) throw this.forged()
      this.settled = this.seq
      this.waitingMark = null
    }
  }

  private forged(): HoldError {
    return this.fail(
      new HoldError(
        'bad_signature',
        `output after frame ${this.settled} was not signed by the host: someone with read access forged it`,
        'request a new screen and replace what was shown since',
      ),
    )
  }

  private fail(error: HoldError): HoldError {
    this.failure = error
    this.waitingMark = null
    return error
  }
}
