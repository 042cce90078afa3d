// Output that a host sends once for all readers of a session, as one attached channel shows it.
//
// The channel begins like any other. When the host says from which offset on the output comes by what is sent to all,
// frames from there take over, exactly there: what came early waits, what was here already is cut off. When frames are
// missing, or turn out not to be the host's, the channel starts over with a screen. Calls must not overlap.

import { readU64 } from './bytes'
import type { Crypto } from './crypto'
import { HoldError } from './errors'
import type { EpochFloor } from './epoch-floor'
import { BroadcastListener } from './broadcast-listener'
import type { HostMessage } from './messages'

const EARLY_MAX_BYTES = 1 << 20 // frames that wait for their key, or for what comes before them

export type OutputMessage = Extract<HostMessage, { t: 'output' | 'resync' | 'closed' | 'dismissed' }>

interface SharedOutputOptions {
  crypto: Crypto
  session: string
  channel: number
  hostKey: Uint8Array
  floor: EpochFloor
  since: number | null // its user has seen everything before this offset, and asked for what follows
  forward: (message: OutputMessage) => void
  restart: () => void // ask the host for that: `share` with `anew`
}

export class SharedOutput {
  private readonly listener: BroadcastListener
  private shown: number | null
  private from: number | null = null // from there on it comes by frames
  private frames: Uint8Array[] = [] // that came before their key
  private pieces: { offset: number; data: Uint8Array }[] = [] // that came before what is in front of them
  private held: { offset: number; message: OutputMessage }[] = [] // of the channel itself, behind pieces to come
  private earlyBytes = 0
  private alone = false // the host was asked to start over: nothing is shared for now
  private spoiled = false // and since then something was missed again

  constructor(private readonly options: SharedOutputOptions) {
    this.shown = options.since
    this.listener = new BroadcastListener(options.crypto, options.session, options.hostKey, options.floor)
  }

  /** Something the host says on this channel to this operator alone. */
  message(message: OutputMessage): void {
    if (message.t === 'closed' || message.t === 'dismissed') {
      const last = this.held.at(-1)
      if (last) this.held.push({ offset: last.offset, message })
      else this.options.forward(message)
      return
    }
    const { offset } = message
    if (message.t === 'resync') {
      this.shown = offset
      this.options.forward(message)
    } else if (this.shown !== null && offset > this.shown && this.from !== null) {
      this.held.push({ offset, message })
      return
    } else {
      this.shown = offset + message.data.length
      if (message.data.length) this.options.forward(message)
    }
    this.catchUp()
  }

  /** The host's answer: from there on. */
  shared(offset: number): void {
    this.from = offset
    this.alone = false
    if (this.spoiled) this.startOver()
    else this.catchUp()
  }

  /** It does not come by frames, then; what waited for them need not wait. */
  refused(): void {
    this.from = null
    const held = this.held
    this.held = []
    for (const { message } of held) this.options.forward(message)
  }

  async key(body: Uint8Array, now: number): Promise<void> {
    try {
      await this.listener.takeKey(body, now)
    } catch (error) {
      if (!isCode(error, 'output_refused')) this.startOver()
      return
    }
    const frames = this.frames
    this.frames = []
    this.earlyBytes = 0
    for (const frame of frames) await this.frame(frame, now)
  }

  mark(body: Uint8Array, now: number): void {
    try {
      this.listener.mark(body, now)
      this.listener.poll(now)
    } catch {
      this.startOver()
    }
  }

  /** From the relay. */
  async frame(frame: Uint8Array, now: number): Promise<void> {
    if (this.listener.isEarly(frame)) {
      this.earlyBytes += frame.length
      if (this.earlyBytes > EARLY_MAX_BYTES) {
        this.frames = []
        this.earlyBytes = frame.length
      }
      this.frames.push(frame)
      return
    }
    let data: Uint8Array
    try {
      data = (await this.listener.open(frame, now)).data
    } catch (error) {
      // Not the host's, or not for us: as if it had not come.
      if (!isCode(error, 'output_refused') && !isCode(error, 'fenced')) this.startOver()
      return
    }
    if (data.length >= 8) {
      this.pieces.push({ offset: readU64(data, 0), data: data.subarray(8) })
      this.catchUp()
    }
  }

  /** Something was left out: by the relay, or because this page could not take it. */
  startOver(): void {
    if (this.alone) {
      this.spoiled = true
      return
    }
    this.alone = true
    this.spoiled = false
    this.from = null
    this.pieces = []
    this.frames = []
    this.earlyBytes = 0
    if (!this.listener.lost) this.listener.giveUp()
    this.options.restart()
  }

  /** Show what follows on what was shown. */
  private catchUp(): void {
    if (this.from === null || this.shown === null || this.alone) return
    const pieces = this.pieces
    this.pieces = []
    for (let at = 0; at < pieces.length; at++) {
      const { offset, data } = pieces[at] as { offset: number; data: Uint8Array }
      if (offset > this.shown) {
        this.pieces = pieces.slice(at)
        if (this.shown >= this.from) return this.startOver()
        break
      }
      const fresh = data.subarray(this.shown - offset)
      if (fresh.length) {
        this.options.forward({ t: 'output', channel: this.options.channel, offset: this.shown, data: fresh })
        this.shown += fresh.length
      }
    }
    while (this.held[0] && this.held[0].offset <= this.shown) {
      const { message } = this.held.shift() as { message: OutputMessage }
      // An empty piece only says how far the output goes.
      if (message.t !== 'output' || message.data.length) this.options.forward(message)
    }
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof HoldError && error.code === code
}
