// One attachment to a live session: the session's own channel, its output from the channel and from what the host sends
// to all, and its events. It lives until the channel is lost; session.ts makes the next one.

import { hex } from '../wire/bytes'
import { asHoldError, type HoldError } from '../wire/errors'
import type { HostMessage } from '../wire/messages'
import { type OutputMessage, SharedOutput } from '../wire/shared-output'
import type { Size } from '../wire/generated/values'
import { Conversation } from './conversation'
import type { Epochs } from './epochs'
import type { MachineLink } from './machine-link'
import { now, Ordered } from './ordered'
import type { RelayLink } from './relay-link'
import { dial } from './secure-channel'

export interface AttachOptions {
  session: string // whole id
  operator: string
  epochs: Epochs
  observe: boolean
  since: number | null
  size: Size | null
  scrollback: boolean
  onOutput: (message: OutputMessage) => void
  onMessage: (message: HostMessage) => void
  onEnd: (why: HoldError) => void
}

const CHANNEL = 1

export class Attachment {
  readonly conversation: Conversation
  readonly epoch: number
  private readonly relay: RelayLink
  private readonly options: AttachOptions
  private readonly shared: SharedOutput
  private readonly ordered = new Ordered((error) => this.fail(asHoldError(error)))
  private readonly onFrame = (frame: Uint8Array | null) => this.ordered.run(() => this.frame(frame))
  private sharing = false

  private constructor(
    machine: MachineLink,
    relay: RelayLink,
    conversation: Conversation,
    options: AttachOptions,
  ) {
    const { channel } = conversation
    this.relay = relay
    this.conversation = conversation
    this.epoch = channel.epoch
    this.options = options
    this.shared = new SharedOutput({
      crypto: machine.keys.crypto,
      session: options.session,
      channel: CHANNEL,
      hostKey: channel.stream.host.key,
      floor: channel.floor,
      since: options.since,
      forward: options.onOutput,
      beginAnew: () => void this.share(true),
    })
    conversation.onMessage = (message) => this.told(message)
    conversation.onKey = (body) => this.ordered.run(() => this.shared.key(body, now()))
    conversation.onMark = (body) => this.ordered.run(() => this.shared.mark(body, now()))
    conversation.onEnd = options.onEnd
  }

  /** The channel is made, and `attach` is on its way; `attached` waits for its answer. */
  static async make(machine: MachineLink, relay: RelayLink, options: AttachOptions): Promise<Attachment> {
    const { session, epochs } = options
    const floor = epochs.floor(session)
    const stream = await relay.open(machine.key, session)
    const channel = await dial(machine.keys, stream, {
      opening: { session },
      session,
      floor,
      grant: machine.stored.peek().grant,
    })
    epochs.saw(session, floor.highest)
    return new Attachment(machine, relay, new Conversation(channel, options.operator), options)
  }

  async attach(): Promise<HostMessage<'attached'>> {
    const { session, observe, since, size, scrollback } = this.options
    const attached = await this.conversation.ask('attach', {
      session,
      channel: CHANNEL,
      observe,
      scrollback,
      ...(since === null ? {} : { since }),
      ...(size === null || observe ? {} : { size }),
    })
    void this.subscribe()
    return attached
  }

  tellSize(size: Size): void {
    if (this.options.observe) return
    this.conversation.tell('resize', { session: this.options.session, size, channel: CHANNEL })
  }

  /** Begin again with a screen. False: that needs another attachment. */
  beginAnew(): boolean {
    if (!this.sharing) return false
    this.ordered.run(() => this.shared.startOver())
    return true
  }

  close(): void {
    this.relay.unsubscribe(this.options.session, this.onFrame)
    this.conversation.close()
  }

  private told(message: HostMessage): void {
    const ours = 'channel' in message && message.channel === CHANNEL
    if (
      message.t === 'output' ||
      message.t === 'resync' ||
      message.t === 'closed' ||
      message.t === 'dismissed'
    ) {
      if (ours) this.ordered.run(() => this.shared.message(message))
    } else {
      this.options.onMessage(message)
    }
  }

  private async subscribe(): Promise<void> {
    try {
      await this.relay.subscribe(this.options.session, this.onFrame)
    } catch {
      return // then this view has its output to itself
    }
    this.sharing = true
    await this.share(false)
  }

  private async frame(frame: Uint8Array | null): Promise<void> {
    if (this.conversation.over) return
    if (frame === null) this.shared.startOver()
    else await this.shared.frame(frame, now())
  }

  private async share(anew: boolean): Promise<void> {
    const { session } = this.options
    try {
      const { offset } = await this.conversation.ask('share', { session, channel: CHANNEL, anew })
      this.ordered.run(() => this.shared.shared(offset))
    } catch {
      this.ordered.run(() => this.shared.refused())
    }
  }

  private fail(error: HoldError): void {
    console.error(`output of ${hex(this.conversation.channel.stream.host.key).slice(0, 8)}`, error)
    this.options.onEnd(error) // first: a close is an end of its own, that says less
    this.close()
  }
}
