// A view on one session, for the screens. It attaches, reconnects after every temporary loss, and keeps what was typed
// in order and exactly once. Pure state is in unacked-inputs.ts and output-delivery.ts, one connection in attachment.ts,
// the requests in open-session.ts.

import { signal, type Signal } from '@preact/signals-core'
import type {
  Ending,
  LinkState,
  OpenOptions,
  OutputListener,
  SessionInfo,
  Size,
  Trouble,
  Unreached,
} from './api'
import { hex } from '../wire/bytes'
import { asHoldError, HoldError } from '../wire/errors'
import { isSessionId } from '../wire/ids'
import { INPUT_MAX_BYTES } from '../wire/generated/constants'
import type { HostMessage } from '../wire/messages'
import type { OutputMessage } from '../wire/shared-output'
import { Attachment } from './attachment'
import { Backoff, Pause } from './backoff'
import { OutputDelivery } from './output-delivery'
import { random } from './device-keys'
import type { EpochStore } from './epoch-store'
import { UnackedInputs, type InputTag, type Offer } from './unacked-inputs'
import { LASTING, type MachineLink, unreachedBy } from './machine-link'
import { moment, now } from './task-queue'
import { InputRightsRetry } from './input-rights-retry'
import { SessionFacts } from './session-facts'
import { stateAfter } from './state-event'

const LOOK_MS = 300 // after an event: then command, directory and title are asked for
const FENCED_S = 3 // between looks whether a fenced session is back
const RTT_EVERY_S = 1 // an input is acknowledged by itself so often; the others together

// The host has nothing under this id that runs: it says whether that ended, was lost or never was.
const OVER_OR_GONE = new Set(['session_ended', 'session_asleep', 'session_lost', 'no_such_session'])

const OVER = new Set<string>(['ended', 'lost', 'asleep']) // nothing can be attached to

function overError(ending: Ending | null): HoldError {
  return typeof ending?.lost === 'string'
    ? new HoldError('session_lost', `the session was lost: ${ending.lost}`)
    : new HoldError('session_ended', 'the session has ended')
}

export class SessionView extends SessionFacts {
  readonly observing
  readonly link: Signal<LinkState>
  readonly rtt: Signal<number | null> = signal(null)
  readonly inputs = new UnackedInputs()
  readonly machine: string
  protected attachment: Attachment | null = null // that is attached
  private making: Attachment | null = null
  private readonly operator = hex(random(16))
  private readonly delivery = new OutputDelivery(() => this.resync())
  private readonly pause = new Pause()
  private id: string | null
  private size: Size | null
  private readonly trips = new Set<(ms: number) => void>()
  private readonly rightsRetry = new InputRightsRetry(
    this.rights,
    () => this.machineLink.refreshActors(),
    () => this.typeAgain(),
  )
  private epoch = 0
  private withScrollback = false // whether the next resync brings the lines above the screen
  private resyncWanted = false // a screen was requested while disconnected
  private rttAt = 0
  private looking: ReturnType<typeof setTimeout> | undefined
  private since = Date.now() / 1000
  private done = false
  private checking = false
  private unreport = (): void => undefined

  constructor(
    link: MachineLink,
    protected readonly epochs: EpochStore,
    readonly session: string,
    private readonly options: OpenOptions,
  ) {
    super(link)
    this.machine = hex(link.key)
    this.observing = signal(options.observe ?? false)
    this.size = options.size ?? null
    this.link = signal<LinkState>({ at: 'connecting', why: '', since: this.since })
    const known = link.sessions.find(session)
    this.info.value = known
    this.id = known?.id ?? (isSessionId(session) ? session : null)
    if (known && this.finishIfOver(known)) return
    this.unreport = link.report.subscribe(({ link, why, unreached, trouble }) => {
      const { at } = this.link.peek()
      const waits = at === 'connecting' || at === 'offline'
      if (link === 'offline' && waits) this.away(why, unreached ?? 'silent', trouble, null)
    })
    void this.live()
  }

  get inputPending() {
    return this.inputs.pending
  }

  onOutput(listener: OutputListener): () => void {
    return this.delivery.listen(listener)
  }

  onRoundTrip(listener: (ms: number) => void): () => void {
    this.trips.add(listener)
    return () => this.trips.delete(listener)
  }

  resync(): void {
    this.delivery.drop()
    if (!this.attachment) this.resyncWanted = true
    else if (!this.attachment.restart()) this.attachment.close() // its end brings a new one, with a screen
  }

  input(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += INPUT_MAX_BYTES) {
      const data = bytes.slice(at, at + INPUT_MAX_BYTES)
      if (this.done || !this.inputs.hasRoom) {
        const why = this.done
          ? new HoldError('session_ended', 'this view of the session is closed: input is disabled')
          : new HoldError('limit_reached', 'too much input is waiting to be accepted by the session')
        this.notify({ kind: 'refused', trouble: why, seq: 0 })
        return
      }
      this.offer('input', { data }, data.length, null)
    }
  }

  resize(size: Size): void {
    this.size = size
    this.attachment?.sendSize(size)
  }

  close(): void {
    if (this.done) return
    this.finish({ at: 'closed' }, new HoldError('closed', 'this view was closed'))
  }

  // -- input ------------------------------------------------------------------------------------

  protected offer(
    tag: InputTag,
    content: Offer['content'],
    size: number,
    settle: Offer['settle'],
    once = false,
  ): void {
    const offer = this.inputs.add(tag, content as never, size, moment(), settle, once)
    if (this.attachment) this.send(this.attachment, offer)
  }

  private send(attachment: Attachment, offer: Offer): void {
    const at = now()
    const fields: Record<string, unknown> = { session: this.id, seq: offer.seq, ...offer.content }
    if (offer.tag === 'input') fields.quiet = at - this.rttAt < RTT_EVERY_S
    if (!fields.quiet) this.rttAt = at
    offer.request = attachment.connection.send(offer.tag, fields as never)
    offer.sentAt = at
  }

  private accepted({ seq, offset, repeated }: HostMessage<'accepted'>): void {
    const offer = this.inputs.taken(seq, offset, repeated)
    if (offer?.sentAt && this.rttAt === offer.sentAt) this.recordRoundTrip((now() - offer.sentAt) * 1000)
  }

  private recordRoundTrip(ms: number): void {
    for (const listener of [...this.trips]) listener(ms)
    this.rtt.value = this.rtt.value === null ? ms : this.rtt.value * 0.7 + ms * 0.3
  }

  // -- connecting and reconnecting --------------------------------------------------------------------

  private async live(): Promise<void> {
    const backoff = new Backoff()
    while (!this.done) {
      const relay = await this.machineLink.throughRelay()
      if (this.done) return
      let error: HoldError
      try {
        error = await this.attached(relay, backoff)
      } catch (thrown) {
        error = asHoldError(thrown)
      }
      this.letGo()
      this.answers.value = false
      if (this.done) return
      this.machineLink.closeIfSilent(relay)
      const wait = await this.judge(error, backoff)
      if (wait > 0 && !this.done) await this.pause.wait(wait)
    }
  }

  /** Attached until the connection is lost; returns the reason. */
  private async attached(relay: Awaited<ReturnType<MachineLink['throughRelay']>>, backoff: Backoff) {
    const session = (this.id ??= await this.lookFor())
    if (this.done) return overError(null)
    void this.checkOver(session)
    let end: (why: HoldError) => void = () => undefined
    const ended = new Promise<HoldError>((resolve) => (end = resolve))
    const since = this.delivery.next
    const observe = this.observing.peek()
    this.resyncWanted = false
    const attachment = await Attachment.make(this.machineLink, relay, {
      session,
      operator: this.operator,
      epochs: this.epochs,
      observe,
      since,
      size: this.size,
      scrollback: this.options.scrollback ?? true,
      onOutput: (message) => this.output(message, end),
      onMessage: (message) => this.onHostMessage(message),
      onEnd: end,
    })
    if (this.done) {
      attachment.close()
      return ended
    }
    this.making = attachment
    this.withScrollback = this.options.scrollback ?? true
    const { connection } = attachment
    const asked = now()
    const turn = connection.ask('turn', { session }).then((shown) => {
      this.recordRoundTrip((now() - asked) * 1000)
      this.setTurn(shown.turn, shown.yours)
    })
    turn.catch(() => undefined)
    try {
      const found = await attachment.attach()
      if (this.resyncWanted || observe !== this.observing.peek()) {
        attachment.close() // something else is wanted by now: the next one brings it
        return ended
      }
      this.making = null
      connection.ask('watch', { session }).catch(() => undefined)
      this.begin(attachment, found)
      backoff.reset()
    } catch (error) {
      // The reason the channel ended is more useful than the fact.
      if (connection.over) return Promise.race([ended, Promise.reject(error)])
      throw error
    }
    return ended
  }

  private async lookFor(): Promise<string> {
    const { info } = await this.machineLink.ask('show', { session: this.session })
    this.setInfo(info)
    this.finishIfOver(info)
    return info.id
  }

  /** Beside the attempt to attach: to what is over there is no way, and a relay or host need not say why. */
  private async checkOver(session: string): Promise<void> {
    if (this.checking) return
    this.checking = true
    try {
      const { info } = await this.machineLink.ask('show', { session })
      if (!this.done && !this.attachment) this.finishIfOver(info)
    } catch {
      // Attaching says what there is to say.
    } finally {
      this.checking = false
    }
  }

  private finishIfOver(info: SessionInfo): boolean {
    if (!OVER.has(info.state)) return false
    this.setInfo(info)
    this.finish({ at: 'ended', ending: info.ending }, overError(info.ending))
    return true
  }

  private begin(attachment: Attachment, found: HostMessage<'attached'>): void {
    this.setInfo(found.info)
    const moved = this.epoch > 0 && this.epoch < attachment.epoch
    this.epoch = attachment.epoch
    const { again, unknown, late } = this.inputs.back(found.input_seq, moved, moment())
    this.lostInputs(unknown, late)
    this.attachment = attachment
    this.link.value = { at: 'online' }
    for (const offer of again) this.send(attachment, offer)
  }

  /** What an end means; returns how long to wait before the next attempt. */
  private async judge(error: HoldError, backoff: Backoff): Promise<number> {
    if (OVER_OR_GONE.has(error.code)) return this.lookUp(error, backoff)
    if (error.code === 'fenced') return this.fenced(error)
    if (error.code === 'closed') return backoff.next() // by ourselves, to begin again
    if (error.code === 'not_permitted' && !this.observing.peek()) {
      this.observing.value = true // it may still be allowed to watch
      this.rightsRetry.start()
      return 0
    }
    if (LASTING.has(error.code)) {
      this.machineLink.checkShutOut(error)
      this.finish({ at: 'refused', trouble: error }, error)
      return 0
    }
    const wait = backoff.next()
    this.awayBy(error, wait)
    return wait
  }

  private typeAgain(): void {
    this.observing.value = false
    this.attachment?.close()
  }

  /** The relay or the host does not have it: has it ended, or is it only unreachable now? */
  private async lookUp(error: HoldError, backoff: Backoff): Promise<number> {
    try {
      const { info } = await this.machineLink.ask('show', { session: this.id ?? this.session })
      if (this.done || this.finishIfOver(info)) return 0
      this.setInfo(info)
      if (info.lease && info.lease.state !== 'held') {
        const why = new HoldError(
          'fenced',
          "the host lost the session's lease; the session is frozen until the host holds it again",
          'the session may be running on another host',
        )
        return this.fenced(why)
      }
    } catch (thrown) {
      const why = asHoldError(thrown)
      if (why.code === 'no_such_session' || why.code === 'ambiguous_name' || LASTING.has(why.code)) {
        this.finish({ at: 'refused', trouble: why }, why)
        return 0
      }
    }
    const wait = backoff.next()
    this.awayBy(error, wait)
    return wait
  }

  private fenced(why: HoldError): number {
    this.turn.value = null // nobody acts there now; the turn is loaded again when it is back
    this.link.value = { at: 'fenced', trouble: why }
    return FENCED_S
  }

  /** What is known of the machine says more than how one attempt failed. */
  private awayBy(error: HoldError, wait: number): void {
    const { link, why, unreached, trouble } = this.machineLink.report.peek()
    const retryAt = Date.now() / 1000 + wait
    if (link === 'offline') this.away(why, unreached ?? 'silent', trouble, retryAt)
    else this.away(error.message, unreachedBy(error), null, retryAt)
  }

  private away(why: string, unreached: Unreached, trouble: Trouble | null, retryAt: number | null): void {
    const before = this.link.peek()
    if (before.at === 'online' || before.at === 'fenced') this.since = Date.now() / 1000
    this.link.value = { at: 'offline', why, unreached, since: this.since, retryAt, trouble }
  }

  private finish(state: LinkState, why: HoldError): void {
    this.done = true
    this.unreport()
    clearTimeout(this.looking)
    this.rightsRetry.stop()
    this.letGo()
    const { unknown, late } = this.inputs.giveUp(why)
    if (state.at !== 'closed') this.lostInputs(unknown, late)
    this.link.value = state
    this.pause.end()
  }

  private letGo(): void {
    const { attachment, making } = this
    this.attachment = this.making = null
    attachment?.close()
    making?.close()
  }

  private lostInputs(unknown: Offer[], late: Offer[]): void {
    const bytes = (offers: Offer[]) => offers.reduce((sum, { size }) => sum + size, 0)
    const why = new HoldError(
      'input_unknown',
      'the connection was lost before the host acknowledged what you typed',
      'check the screen before you type it again',
    )
    if (unknown.length) this.notify({ kind: 'input_unknown', bytes: bytes(unknown), trouble: why })
    if (late.length) this.notify({ kind: 'not_sent', bytes: bytes(late) })
  }

  // -- from the host --------------------------------------------------------------------------------

  private output(message: OutputMessage, end: (why: HoldError) => void): void {
    if (this.done) return
    if (message.t === 'output') {
      this.delivery.live(message.offset, message.data, this.canonical())
    } else if (message.t === 'resync') {
      const first = this.withScrollback
      this.withScrollback = false
      if (message.skipped && !first) this.notify({ kind: 'skipped', bytes: message.skipped })
      this.setSize(message.size)
      this.delivery.resync(message.offset, message.data, message.size, !first)
    } else if (message.t === 'closed') {
      const info = this.info.peek()
      if (info)
        this.setInfo({
          ...info,
          state: stateAfter(message.ending),
          ending: message.ending,
        })
      this.finish({ at: 'ended', ending: message.ending }, overError(message.ending))
    } else {
      const fenced = "the host lost the session's lease; the session is frozen until the host holds it again"
      end(
        message.code === 'fenced'
          ? new HoldError('fenced', fenced, 'the session may be running on another host')
          : new HoldError(
              'not_permitted',
              'your access to this session was revoked',
              'ask whoever gave you access',
            ),
      )
    }
  }

  private onHostMessage(message: HostMessage): void {
    switch (message.t) {
      case 'accepted':
        return this.accepted(message)
      case 'failed': {
        const error = HoldError.reported(message)
        const offer = this.inputs.refused(message.id, error)
        if (offer && !offer.settle) {
          this.notify({ kind: 'refused', trouble: error, seq: offer.seq })
        }
        return
      }
      case 'dropped':
        return this.lookSoon()
      case 'state':
        this.applyEvent(message)
        return this.lookSoon()
      default:
        this.applyEvent(message)
    }
  }

  private lookSoon(): void {
    clearTimeout(this.looking)
    this.looking = setTimeout(async () => {
      const { attachment, id } = this
      if (!attachment || id === null) return
      try {
        this.setInfo((await attachment.connection.ask('show', { session: id })).info)
      } catch {
        // Lost meanwhile; reconnecting brings it.
      }
    }, LOOK_MS)
  }
}
