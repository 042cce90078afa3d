// An operator's connection to a relay: greeted, with streams to hosts in it. What a relay says about who is at the other
// end of a stream is not believed but checked: the host's device by the host's key, the host of a session by the
// session's own key.

import { equal } from '../wire/bytes'
import type { Crypto } from '../wire/crypto'
import { checkDevice, type Device } from '../wire/device'
import { asHoldError, HoldError } from '../wire/errors'
import { RELAY_VERSION } from '../wire/generated/constants'
import type { ToRelay } from '../wire/generated/messages'
import { sessionIdOf } from '../wire/ids'
import { decodeRelayMessage, encodeToRelay, type RelayMessage, sessionText } from '../wire/relay-messages'
import { leaveAfter, within } from './backoff'
import { now } from './task-queue'

const ANSWER_S = 10
const QUIET_S = 0.2 // nothing was said for so long: what was asked before is most likely answered
const NONE = new Uint8Array(0)

type Opened = Extract<RelayMessage, { t: 'opened' }>

const unreachable = (message: string) =>
  new HoldError('relay_unreachable', message, 'sessions keep running; this page keeps trying')

/** A two-way pipe to a host. Pieces go out in order, as the relay has room for them. */
export class Stream {
  onData: (data: Uint8Array) => void = () => undefined
  onClosed: (why: string) => void = () => undefined
  private credit: number
  private waiting: Uint8Array[] = []

  constructor(
    private readonly link: RelayLink,
    readonly number: number,
    readonly host: Device,
    window: number,
  ) {
    this.credit = window
  }

  send(data: Uint8Array): void {
    if (this.waiting.length || this.credit < data.length) this.waiting.push(data)
    else this.put(data)
  }

  maySend(size: number): void {
    this.credit += size
    while (this.waiting[0] && this.credit >= this.waiting[0].length)
      this.put(this.waiting.shift() as Uint8Array)
  }

  close(): void {
    this.link.forget(this)
  }

  private put(data: Uint8Array): void {
    this.credit -= data.length
    this.link.carry(this.number, data)
  }
}

/** One WebSocket to a relay. */
export class RelayLink {
  onLost: (why: HoldError) => void = () => undefined
  onLeave: () => void = () => undefined // the relay ends, and now is a good moment to go
  lastReceivedAt = now() // when the relay last sent anything
  private readonly socket: WebSocket
  private readonly answers = new Map<number, (answer: RelayMessage | HoldError) => void>()
  private readonly streams = new Map<number, Stream>()
  private readonly subscribed = new Map<string, (frame: Uint8Array | null) => void>()
  private greeted: ((outcome: RelayMessage | HoldError) => void) | null = null
  private lastId = 0
  private window = 0
  private over = false
  private carriedAt = 0

  private constructor(
    private readonly crypto: Crypto,
    readonly url: string,
  ) {
    try {
      this.socket = new WebSocket(`${url.replace(/^http/, 'ws')}/v1/operator`)
    } catch (error) {
      throw unreachable(`the relay at ${url} could not be reached: ${asHoldError(error).message}`)
    }
    this.socket.binaryType = 'arraybuffer'
  }

  /** Dialled and greeted; throws relay_unreachable, or what the relay refuses with. */
  static async connect(crypto: Crypto, url: string): Promise<RelayLink> {
    const link = new RelayLink(crypto, url)
    try {
      await within(ANSWER_S, link.greet(), () => unreachable(`the relay at ${url} does not answer`))
    } catch (error) {
      link.close()
      throw error
    }
    return link
  }

  /** A stream to this host; with a session, to the host that has it: this one, or one its key vouches for. */
  async open(host: Uint8Array, session: string | null): Promise<Stream> {
    const answer = await this.ask('open', { host: session === null ? host : NONE, session })
    if (answer.t !== 'opened') throw new HoldError('protocol_violation', `the relay answered ${answer.t}`)
    // From here on data may come: the stream must be known before anything is awaited.
    const found: Device = { key: answer.host, static: answer.static, signature: answer.binding }
    const stream = new Stream(this, answer.stream, found, this.window)
    this.streams.set(stream.number, stream)
    try {
      await checkDevice(this.crypto, found)
      if (!equal(found.key, host)) await this.checkMoved(answer, session)
    } catch (error) {
      stream.close()
      throw error
    }
    return stream
  }

  /** What its host sends to all, frame by frame; null: some were left out. The host must have admitted us. */
  async subscribe(session: string, onFrame: (frame: Uint8Array | null) => void): Promise<void> {
    this.subscribed.set(session, onFrame)
    try {
      await this.ask('subscribe', { session })
    } catch (error) {
      if (this.subscribed.get(session) === onFrame) this.subscribed.delete(session)
      throw error
    }
  }

  /** No more of it for this reader, unless another one took its place. */
  unsubscribe(session: string, onFrame: (frame: Uint8Array | null) => void): void {
    if (this.subscribed.get(session) !== onFrame) return
    this.subscribed.delete(session)
    this.say('unsubscribe', { session })
  }

  say<T extends keyof ToRelay>(tag: T, fields: ToRelay[T]): void {
    if (this.socket.readyState === 1) this.socket.send(encodeToRelay(tag, fields) as Uint8Array<ArrayBuffer>)
  }

  carry(stream: number, data: Uint8Array): void {
    this.carriedAt = now()
    this.say('data', { stream, data })
  }

  forget(stream: Stream): void {
    if (this.streams.delete(stream.number)) this.say('close', { stream: stream.number })
  }

  close(): void {
    this.socket.close()
    this.lost('closed')
  }

  private greet(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.greeted = (outcome) => {
        this.greeted = null
        if (outcome instanceof HoldError) return reject(outcome)
        if (outcome.t === 'greeted') this.window = outcome.stream_window_bytes
        resolve()
      }
      this.socket.onopen = () => this.say('greet', { versions: [RELAY_VERSION] })
      this.socket.onmessage = (event: MessageEvent) => this.received(event.data as ArrayBuffer)
      this.socket.onclose = (event: CloseEvent) => this.lost(event.reason || `code ${event.code}`)
      this.socket.onerror = () => this.lost('no connection')
    })
  }

  private async ask(tag: 'open' | 'subscribe', fields: object): Promise<RelayMessage> {
    if (this.over) throw unreachable('the connection to the relay was lost')
    const id = ++this.lastId
    const answered = new Promise<RelayMessage>((resolve, reject) => {
      this.answers.set(id, (answer) => (answer instanceof HoldError ? reject(answer) : resolve(answer)))
    })
    this.say(tag, { id, ...fields } as never)
    try {
      return await within(ANSWER_S, answered, () => unreachable(`the relay at ${this.url} does not answer`))
    } finally {
      this.answers.delete(id)
    }
  }

  /** Another host than we know has the session: right, if the session's own key says so. */
  private async checkMoved(answer: Opened, session: string | null): Promise<void> {
    if (session !== null && sessionIdOf(answer.session_key) === session) {
      const text = sessionText(session, answer.host, answer.epoch)
      if (await this.crypto.verify(answer.session_key, text, answer.vouched)) return
    }
    throw new HoldError('bad_signature', 'the host behind the relay could not prove its identity')
  }

  // -- what the relay says ---------------------------------------------------------------------

  private received(data: ArrayBuffer): void {
    this.lastReceivedAt = now()
    try {
      this.take(decodeRelayMessage(new Uint8Array(data)))
    } catch (error) {
      this.fail(asHoldError(error))
      this.close()
    }
  }

  private take(message: RelayMessage): void {
    switch (message.t) {
      case 'data':
        this.streams.get(message.stream)?.onData(message.data)
        break
      case 'credit':
        this.streams.get(message.stream)?.maySend(message.size)
        break
      case 'closed': {
        const stream = this.streams.get(message.stream)
        this.streams.delete(message.stream)
        stream?.onClosed(message.why)
        break
      }
      case 'broadcast':
        this.subscribed.get(message.session)?.(message.data)
        break
      case 'gap':
      case 'gone':
        this.subscribed.get(message.session)?.(null)
        break
      case 'greeted':
        this.greeted?.(message)
        break
      case 'going_away':
        this.goingAway(message.within_s)
        break
      case 'failed':
        if (message.id === 0) this.fail(HoldError.reported(message))
        else this.answers.get(message.id)?.(HoldError.reported(message))
        break
      default:
        this.answers.get(message.id)?.(message)
    }
  }

  /** The relay is stopping: disconnect in time, when nothing is in flight, and reconnect as after any loss. */
  private goingAway(withinS: number): void {
    const { first, latest } = leaveAfter(withinS)
    const by = now() + latest
    const leave = (): void => {
      if (now() < Math.min(by, this.carriedAt + QUIET_S)) setTimeout(leave, QUIET_S * 1000)
      else this.onLeave()
    }
    setTimeout(leave, first * 1000)
  }

  private fail(error: HoldError): void {
    this.greeted?.(error)
    for (const answer of [...this.answers.values()]) answer(error)
  }

  private lost(why: string): void {
    if (this.over) return
    this.over = true
    const error = unreachable(`the connection to the relay was lost: ${why}`)
    this.fail(error)
    const streams = [...this.streams.values()]
    this.streams.clear()
    this.subscribed.clear()
    for (const stream of streams) stream.onClosed(why)
    this.onLost(error)
  }
}
