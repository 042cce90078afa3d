// One attachment to a live session: the session's own channel, its output from the channel and from the host's
// broadcast, and its events. It lasts until the channel is lost; session-view.ts makes the next one.

import { hex } from '../wire/bytes'
import { asHoldError, type HoldError } from '../wire/errors'
import type { HostMessage } from '../wire/messages'
import { type OutputMessage, SharedOutput } from '../wire/shared-output'
import type { Size } from '../wire/generated/values'
import type { HostConnection } from './host-connection'
import type { EpochStore } from './epoch-store'
import type { MachineLink } from './machine-link'
import { now, TaskQueue } from './task-queue'
import type { RelayLink } from './relay-link'
import { sessionChannel } from './session-channel'

export interface AttachOptions {
  session: string // whole id
  operator: string
  epochs: EpochStore
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
  readonly epoch: number
  private readonly shared: SharedOutput
  private readonly queue = new TaskQueue((error) => this.fail(asHoldError(error)))
  private readonly onFrame = (frame: Uint8Array | null) => this.queue.run(() => this.frame(frame))
  private sharing = false

  private constructor(
    machine: MachineLink,
    private readonly relay: RelayLink,
    readonly connection: HostConnection,
    private readonly options: AttachOptions,
  ) {
    const { channel } = connection
    this.epoch = channel.epoch
    this.shared = new SharedOutput({
      crypto: machine.keys.crypto,
      session: options.session,
      channel: CHANNEL,
      hostKey: channel.stream.host.key,
      floor: channel.floor,
      since: options.since,
      forward: options.onOutput,
      restart: () => void this.share(true),
    })
    connection.onMessage = (message) => this.onHostMessage(message)
    connection.onKey = (body) => this.queue.run(() => this.shared.key(body, now()))
    connection.onMark = (body) => this.queue.run(() => this.shared.mark(body, now()))
    connection.onEnd = options.onEnd
  }

  /** The channel is made, and `attach` is on its way; `attached` waits for its answer. */
  static async make(machine: MachineLink, relay: RelayLink, options: AttachOptions): Promise<Attachment> {
    const { session, epochs, operator } = options
    const connection = await sessionChannel(machine, relay, epochs, session, operator)
    return new Attachment(machine, relay, connection, options)
  }

  async attach(): Promise<HostMessage<'attached'>> {
    const { session, observe, since, size, scrollback } = this.options
    const attached = await this.connection.ask('attach', {
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

  sendSize(size: Size): void {
    if (this.options.observe) return
    this.connection.send('resize', { session: this.options.session, size, channel: CHANNEL })
  }

  /** Begin again with a screen. False: that needs another attachment. */
  restart(): boolean {
    if (!this.sharing) return false
    this.queue.run(() => this.shared.startOver())
    return true
  }

  close(): void {
    this.relay.unsubscribe(this.options.session, this.onFrame)
    this.connection.close()
  }

  private onHostMessage(message: HostMessage): void {
    const ours = 'channel' in message && message.channel === CHANNEL
    if (
      message.t === 'output' ||
      message.t === 'resync' ||
      message.t === 'closed' ||
      message.t === 'dismissed'
    ) {
      if (ours) this.queue.run(() => this.shared.message(message))
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
    if (this.connection.over) return
    if (frame === null) this.shared.startOver()
    else await this.shared.frame(frame, now())
  }

  private async share(anew: boolean): Promise<void> {
    const { session } = this.options
    try {
      const { offset } = await this.connection.ask('share', { session, channel: CHANNEL, anew })
      this.queue.run(() => this.shared.shared(offset))
    } catch {
      this.queue.run(() => this.shared.refused())
    }
  }

  private fail(error: HoldError): void {
    console.error(`output of ${hex(this.connection.channel.stream.host.key).slice(0, 8)}`, error)
    this.options.onEnd(error) // first: a close is an end of its own, that says less
    this.close()
  }
}
