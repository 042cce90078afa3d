// The protocol over one channel: `hello` first, then requests and their answers, and unsolicited messages. Requests may
// be sent before the host's welcome: they are handled in order.

import { RecordKind } from '../wire/generated/constants'
import { HoldError } from '../wire/errors'
import {
  type AnswerTo,
  decodeHostMessage,
  encodeHello,
  encodeRequest,
  type HostMessage,
  mustBeSigned,
  type RequestFields,
  type RequestTag,
} from '../wire/messages'
import { type Opened } from '../wire/record-layer'
import { within } from './backoff'
import type { SecureChannel } from './secure-channel'

const ANSWER_S = 30 // a graph, or the end of a session that does not want to

const CLIENT = 'holdfast web'

type Waiting = (answer: HostMessage | HoldError) => void

export class HostConnection {
  /** Unsolicited messages, and answers to requests made with `send`. */
  onMessage: (message: HostMessage) => void | Promise<void> = () => undefined
  onKey: (body: Uint8Array) => void | Promise<void> = () => undefined
  onMark: (body: Uint8Array) => void = () => undefined
  onEnd: (why: HoldError) => void = () => undefined
  private readonly waiting = new Map<number, Waiting>()
  private lastId = 0

  constructor(
    readonly channel: SecureChannel,
    operator: string,
  ) {
    channel.onSaid = (said) => this.said(said)
    channel.onEnd = (why) => this.end(why)
    channel.send(encodeHello(operator, CLIENT), false)
  }

  get over(): boolean {
    return this.channel.over
  }

  /** Sends a request and does not wait. Returns its id. */
  send<T extends RequestTag>(tag: T, fields: RequestFields<T>): number {
    const id = ++this.lastId
    this.channel.send(encodeRequest(tag, id, fields), mustBeSigned(tag))
    return id
  }

  /** Sends a request; resolves with the answer, rejects with the refusal. */
  async ask<T extends RequestTag>(
    tag: T,
    fields: RequestFields<T>,
    patience = ANSWER_S,
  ): Promise<AnswerTo<T>> {
    if (this.over) throw new HoldError('host_lost', 'the connection to the host was lost')
    const id = this.lastId + 1
    const answered = new Promise<HostMessage>((resolve, reject) => {
      this.waiting.set(id, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer)))
    })
    this.send(tag, fields)
    const late = () => new HoldError('timed_out', `the host did not answer ${tag} in time`)
    try {
      return (await within(patience, answered, late)) as AnswerTo<T>
    } finally {
      this.waiting.delete(id)
    }
  }

  close(): void {
    this.channel.close()
    this.end(new HoldError('closed', 'this view was closed'))
  }

  private async said(said: Opened): Promise<void> {
    if (said.kind === RecordKind.OUTPUT_KEY) return this.onKey(said.body)
    if (said.kind === RecordKind.OUTPUT_MARK) return this.onMark(said.body)
    const message = decodeHostMessage(said.body)
    if (message === null) return
    const id = 'id' in message ? message.id : -1
    if (message.t === 'failed' && id === 0) {
      this.channel.close()
      return this.end(HoldError.reported(message))
    }
    const waiting = this.waiting.get(id)
    if (waiting) waiting(message.t === 'failed' ? HoldError.reported(message) : message)
    else await this.onMessage(message)
  }

  private end(why: HoldError): void {
    const lost = new HoldError('host_lost', why.message, why.hint, true)
    for (const waiting of [...this.waiting.values()]) waiting(lost)
    const onEnd = this.onEnd
    this.onEnd = () => undefined
    onEnd(why)
  }
}
