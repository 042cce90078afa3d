// One machine: the connection to its relay, the host's own channel through it, and what is known of its sessions.
// Reconnects after every temporary loss. Channels of sessions (session-view.ts) share its connection to the relay.

import { computed, signal, type ReadonlySignal } from '@preact/signals-core'
import type { Actor, Link, Trouble, Unreached } from './api'
import { ApprovalList } from './approval-list'
import { hex, unhex } from '../wire/bytes'
import { asHoldError, type Code, HoldError } from '../wire/errors'
import { EpochFloor } from '../wire/epoch-floor'
import { decodeChain, type Grant } from '../wire/grants'
import { HOST_EPOCH, hostChannelId } from '../wire/ids'
import type { AnswerTo, HostMessage, RequestFields, RequestTag } from '../wire/messages'
import type { Envelope } from '../wire/generated/values'
import { Backoff, Pause, within } from './backoff'
import { HostConnection } from './host-connection'
import { type DeviceKeys, random } from './device-keys'
import { now } from './task-queue'
import { RelayLink } from './relay-link'
import { dial } from './secure-channel'
import { SessionList } from './session-list'
import type { StoredMachine } from './store'

const SILENT_S = 10 // a relay with a live channel in it says something every 5 s
const BEAT_S = 6.5 // and so one beat is missing
const PROBE_S = 2 // for an answer to one that was silent
const TROUBLE_S = 60 // between looks whether something that does not pass has passed
const ASK_S = 20 // for the way to be open before a question is given up

/** Errors that retrying does not fix. */
export const LASTING = new Set<Code>([
  'access_revoked',
  'actor_revoked',
  'grant_invalid',
  'grant_expired',
  'grant_revoked',
  'envelope_expired',
  'not_permitted',
  'bad_signature',
  'version_mismatch',
])

/** Of these, those that are about the device and not about one session. */
const OUT = new Set<Code>(['actor_revoked', 'grant_invalid', 'grant_expired', 'grant_revoked'])

interface LinkReport {
  link: Link
  why: string
  unreached: Unreached | null
  trouble: Trouble | null
}

/** What an error of a connection says about where it ends. */
export function unreachedBy({ code }: HoldError): Unreached {
  if (code === 'relay_unreachable') return 'relay'
  return code === 'host_down' || code === 'no_such_session' ? 'down' : 'silent'
}

export class MachineLink {
  readonly report = signal<LinkReport>({ link: 'connecting', why: '', unreached: null, trouble: null })
  readonly actors = signal<Actor[]>([])
  readonly me = signal<Actor | null>(null)
  readonly envelopes = signal<Envelope[] | null>(null) // null until loaded
  readonly sessions: SessionList
  readonly approvals: ApprovalList
  readonly stored: ReadonlySignal<StoredMachine>
  readonly key: Uint8Array
  readonly grant: ReadonlySignal<Grant>
  private readonly kept
  private relay: RelayLink | null = null
  private dropped: RelayLink | null = null
  private waiting: ((relay: RelayLink) => void)[] = []
  private host: HostConnection | null = null
  private readonly pauses = { relay: new Pause(), host: new Pause() }
  private closed = false

  constructor(
    readonly keys: DeviceKeys,
    stored: StoredMachine,
    private readonly urls: (machine: StoredMachine) => string[],
  ) {
    this.kept = signal(stored)
    this.stored = this.kept
    this.key = unhex(stored.key)
    this.grant = computed(() => (decodeChain(this.kept.value.grant).at(-1) as { grant: Grant }).grant)
    this.sessions = new SessionList((tag, fields) => this.ask(tag, fields))
    this.approvals = new ApprovalList((tag, fields) => this.ask(tag, fields))
    void this.dialRelays()
    void this.keepConnected()
  }

  replace(stored: StoredMachine): void {
    const changed = hex(stored.grant) !== hex(this.kept.value.grant)
    this.kept.value = stored
    if (changed) {
      this.host?.close()
      this.nudge()
    }
  }

  /** The connection to a relay, when there is one. */
  throughRelay(): Promise<RelayLink> {
    if (this.relay) return Promise.resolve(this.relay)
    return new Promise((resolve) => this.waiting.push(resolve))
  }

  /** A channel broke: if this connection is silent as well, it is dead. */
  closeIfSilent(relay: RelayLink): void {
    if (now() - relay.lastReceivedAt > SILENT_S) this.drop(relay)
  }

  /** To find out whether relay or host is silent: not a loss that is reported. */
  private drop(relay: RelayLink): void {
    this.dropped = relay
    relay.close()
  }

  /** Something about the host, or about a session that need not be attached. */
  async ask<T extends RequestTag>(tag: T, fields: RequestFields<T>, patience?: number): Promise<AnswerTo<T>> {
    const host = this.host ?? (await this.online())
    try {
      return await host.ask(tag, fields, patience)
    } catch (error) {
      this.checkShutOut(asHoldError(error))
      throw error
    }
  }

  /** A session's channel or an answer says that this device has no access: reconnecting to the host reports why. */
  checkShutOut(error: HoldError): void {
    if (OUT.has(error.code)) this.host?.close()
  }

  /** Try now: the network came back, or the page became visible. */
  nudge(): void {
    if (this.relay && now() - this.relay.lastReceivedAt > BEAT_S) void this.probe(this.relay)
    this.pauses.relay.end()
    this.pauses.host.end()
  }

  /** After sleep a page cannot know whether its connection is dead or only silent. */
  private async probe(relay: RelayLink): Promise<void> {
    const before = relay.lastReceivedAt
    this.host?.send('list', { ended: true, lost: true })
    await new Promise((resolve) => setTimeout(resolve, PROBE_S * 1000))
    if (relay.lastReceivedAt === before) this.drop(relay)
  }

  close(): void {
    this.closed = true
    this.host?.close()
    this.relay?.close()
    this.nudge()
  }

  // -- the relay -------------------------------------------------------------------------------

  private async dialRelays(): Promise<void> {
    const backoff = new Backoff()
    while (!this.closed) {
      try {
        const relay = await this.dialOne()
        if (this.closed) return relay.close()
        backoff.reset()
        const lost = new Promise<HoldError>((resolve) => (relay.onLost = resolve))
        relay.onLeave = () => relay.close()
        this.relay = relay
        const waiting = this.waiting
        this.waiting = []
        for (const resolve of waiting) resolve(relay)
        const why = await lost
        this.relay = null
        if (this.dropped !== relay) this.down(why)
      } catch (error) {
        this.down(asHoldError(error))
      }
      if (!this.closed) await this.pauses.relay.wait(backoff.next())
    }
  }

  private async dialOne(): Promise<RelayLink> {
    let failure = new HoldError('relay_unreachable', 'no relay is known for this machine')
    for (const url of this.urls(this.kept.value)) {
      try {
        return await RelayLink.connect(this.keys.crypto, url)
      } catch (error) {
        failure = asHoldError(error)
      }
    }
    throw failure
  }

  // -- the host --------------------------------------------------------------------------------

  private async keepConnected(): Promise<void> {
    const backoff = new Backoff()
    while (!this.closed) {
      const relay = await this.throughRelay()
      let error: HoldError
      try {
        error = await this.connectOnce(relay, backoff)
      } catch (thrown) {
        error = asHoldError(thrown)
      }
      this.host = null
      if (this.closed) return
      this.down(error)
      this.closeIfSilent(relay)
      await this.pauses.host.wait(LASTING.has(error.code) ? TROUBLE_S : backoff.next())
    }
  }

  /** Runs until the connection ends; returns the reason. */
  private async connectOnce(relay: RelayLink, backoff: Backoff): Promise<HoldError> {
    const stream = await relay.open(this.key, null)
    const channel = await dial(this.keys, stream, {
      opening: 'host',
      session: hostChannelId(this.key),
      floor: new EpochFloor(HOST_EPOCH),
      grant: this.kept.value.grant,
    })
    const host = new HostConnection(channel, hex(random(16)))
    const ended = new Promise<HoldError>((resolve) => (host.onEnd = resolve))
    host.onMessage = (message) => this.onHostMessage(message)
    try {
      const [listed, waiting] = await Promise.all([
        host.ask('list', { ended: true, lost: true }),
        host.ask('approvals', {}),
        host.ask('watch', {}),
        this.loadActors(host),
      ])
      this.sessions.listed(listed.sessions)
      this.approvals.listed(waiting.approvals)
    } catch (error) {
      // The reason it ended is more useful than the fact.
      if (host.over) return ended
      throw error
    }
    this.host = host
    backoff.reset()
    this.report.value = { link: 'online', why: '', unreached: null, trouble: null }
    return ended
  }

  private async loadActors(host: HostConnection): Promise<void> {
    const [own, known] = await Promise.all([host.ask('show_actor', {}), host.ask('list_actors', {})])
    this.me.value = own.actor
    this.envelopes.value = own.envelopes
    this.actors.value = known.actors
  }

  /** An unknown actor was named: load the actors again. */
  async refreshActors(): Promise<void> {
    const host = this.host
    if (host) await this.loadActors(host).catch(() => undefined)
  }

  private onHostMessage(message: HostMessage): void {
    this.sessions.onHostMessage(message)
    this.approvals.onHostMessage(message)
  }

  private async online(): Promise<HostConnection> {
    const opened = new Promise<HostConnection>((resolve) => {
      const stop = this.report.subscribe(() => {
        if (this.host) {
          resolve(this.host)
          queueMicrotask(() => stop())
        }
      })
    })
    const late = () => {
      const { why, trouble } = this.report.value
      if (trouble) return HoldError.reported(trouble)
      return new HoldError('host_down', why || 'the machine is unreachable', 'try again later')
    }
    if (this.report.value.trouble) throw late()
    return within(ASK_S, opened, late)
  }

  private down(error: HoldError): void {
    if (this.closed) return
    const trouble = LASTING.has(error.code) ? error : null
    this.report.value = {
      link: 'offline',
      why: error.message,
      unreached: unreachedBy(error),
      trouble: trouble ?? this.report.value.trouble,
    }
  }
}
