// Connections to ports of a session's programs, from this page (docs/protocol.md, *Connections to ports*). They have a
// channel of their own, so that no key waits behind a download. The host judges each one, and cuts it when the right to
// it ends.

import { hex } from '../wire/bytes'
import { HoldError } from '../wire/errors'
import { FORWARD_PIECE_BYTES, FORWARD_WINDOW_BYTES } from '../wire/generated/constants'
import { encodeForwardMessage, type ForwardMessage, type HostMessage } from '../wire/messages'
import type { HostConnection } from './host-connection'
import { random } from './device-keys'
import type { EpochStore } from './epoch-store'
import type { MachineLink } from './machine-link'
import { sessionChannel } from './session-channel'

const ROOM_STEP_BYTES = FORWARD_WINDOW_BYTES / 4 // read here, before the host is given more room

type Word = ForwardMessage extends infer C
  ? C extends ForwardMessage
    ? Omit<C, 'session' | 'number'>
    : never
  : never

/** A stream of bytes in both directions. Tests have others. */
export interface ByteStream {
  /** Resolves when the other end has room for it; the order is kept. */
  write(data: Uint8Array): Promise<void>
  /** No more is written. */
  end(): void
  /** The next bytes; null: no more come. Rejects when it was cut off. */
  read(): Promise<Uint8Array | null>
  /** Cancels it. */
  abort(): void
  /** Whether the other end has finished, or it was cut off. */
  readonly ended: boolean
}

export class PortForwarder {
  onEnd: (why: HoldError) => void = () => undefined
  private readonly open = new Map<number, PortConnection>()
  private lastNumber = 0

  constructor(
    private readonly connection: HostConnection,
    private readonly session: string,
  ) {
    connection.onMessage = (message) => this.onHostMessage(message)
    connection.onEnd = (why) => {
      for (const each of this.open.values()) each.cut(new HoldError('host_lost', why.message, why.hint, true))
      this.open.clear()
      this.onEnd(why)
    }
  }

  static async make(machine: MachineLink, epochs: EpochStore, session: string): Promise<PortForwarder> {
    const relay = await machine.throughRelay()
    const connection = await sessionChannel(machine, relay, epochs, session, hex(random(16)))
    return new PortForwarder(connection, session)
  }

  get over(): boolean {
    return this.connection.over
  }

  /** Asked for, and usable at once; what is written is lost when the host refuses, and reading says why. */
  connect(port: number): PortConnection {
    const number = ++this.lastNumber
    const say = (word: Word) => {
      if (!this.over)
        this.connection.channel.send(encodeForwardMessage({ ...word, session: this.session, number }), false)
    }
    const connection = new PortConnection(say, () => this.open.delete(number))
    this.open.set(number, connection)
    this.connection.ask('forward', { session: this.session, number, port }).catch((error: HoldError) => {
      if (this.open.delete(number)) connection.cut(error)
    })
    return connection
  }

  close(): void {
    this.connection.close()
  }

  private onHostMessage(message: HostMessage): void {
    switch (message.t) {
      case 'forward_data':
      case 'forward_room':
      case 'forward_end':
      case 'forward_closed':
        this.open.get(message.number)?.onMessage(message)
    }
  }
}

export class PortConnection implements ByteStream {
  private readonly pieces: Uint8Array[] = []
  private room = FORWARD_WINDOW_BYTES
  private unsaid = 0 // bytes read here that the host does not know of
  private heardEnd = false
  private saidEnd = false
  private failure: HoldError | null = null
  private readers: (() => void)[] = []
  private writers: (() => void)[] = []
  private writing: Promise<void> = Promise.resolve()

  constructor(
    private readonly say: (word: Word) => void,
    private readonly forget: () => void,
  ) {}

  get ended(): boolean {
    return this.heardEnd || this.failure !== null
  }

  write(data: Uint8Array): Promise<void> {
    const written = this.writing.then(() => this.put(data))
    this.writing = written.catch(() => undefined)
    return written
  }

  end(): void {
    this.writing = this.writing.then(() => {
      if (this.failure || this.saidEnd) return
      this.saidEnd = true
      this.say({ t: 'forward_end' })
      this.finish()
    })
  }

  async read(): Promise<Uint8Array | null> {
    for (;;) {
      const piece = this.pieces.shift()
      if (piece) {
        this.unsaid += piece.length
        if (this.unsaid >= ROOM_STEP_BYTES && !this.failure && !this.heardEnd) {
          this.say({ t: 'forward_room', size: this.unsaid })
          this.unsaid = 0
        }
        return piece
      }
      if (this.failure) throw this.failure
      if (this.heardEnd) return null
      await new Promise<void>((resolve) => this.readers.push(resolve))
    }
  }

  abort(): void {
    if (this.failure || (this.heardEnd && this.saidEnd)) return
    this.say({ t: 'forward_closed', code: 'connection_reset', message: 'the connection was cancelled' })
    this.cut(new HoldError('connection_reset', 'the connection was cancelled'))
    this.forget()
  }

  /** From the host. */
  onMessage(message: Word): void {
    if (message.t === 'forward_data') this.pieces.push(message.data)
    else if (message.t === 'forward_room') this.room += message.size
    else if (message.t === 'forward_end') this.heardEnd = true
    else {
      this.forget()
      return this.cut(HoldError.reported(message))
    }
    this.finish()
    this.wake()
  }

  cut(why: HoldError): void {
    this.failure ??= why
    this.wake()
  }

  private async put(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length;) {
      if (this.failure) throw this.failure
      const size = Math.min(this.room, FORWARD_PIECE_BYTES, data.length - at)
      if (size === 0) {
        await new Promise<void>((resolve) => this.writers.push(resolve))
        continue
      }
      this.room -= size
      this.say({ t: 'forward_data', data: data.subarray(at, at + size) })
      at += size
    }
  }

  private finish(): void {
    if (this.heardEnd && this.saidEnd) this.forget()
  }

  private wake(): void {
    const waiting = [...this.readers, ...this.writers]
    this.readers = []
    this.writers = []
    for (const resolve of waiting) resolve()
  }
}
