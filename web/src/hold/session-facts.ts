// What the host reports about one open session: signals for the screens, and notices of single events.

import { computed, signal, type Signal } from '@preact/signals-core'
import type { Notice, Presence, SessionInfo, Size, TurnState } from './api'
import { actorIdOf } from '../wire/ids'
import type { HostMessage } from '../wire/messages'
import type { TurnInfo } from '../wire/generated/values'
import type { MachineLink } from './machine-link'
import { rightsIn } from './rights'
import { afterMigration, afterState } from './state-event'

export class SessionFacts {
  readonly info: Signal<SessionInfo | null> = signal(null)
  readonly turn: Signal<TurnState | null> = signal(null)
  readonly operators: Signal<Presence | null> = signal(null)
  readonly answers = signal(false)
  readonly rights = computed(() => {
    const { envelopes, grant } = this.machineLink
    return rightsIn(this.info.value, envelopes.value, grant.value, Date.now() / 1000)
  })
  protected readonly machineLink: MachineLink
  private readonly actorId: string
  private readonly notices = new Set<(notice: Notice) => void>()

  constructor(link: MachineLink) {
    this.machineLink = link
    this.actorId = actorIdOf(link.keys.signer.public)
  }

  get actors() {
    return this.machineLink.actors
  }
  get me() {
    return this.machineLink.me
  }

  onNotice(listener: (notice: Notice) => void): () => void {
    this.notices.add(listener)
    return () => this.notices.delete(listener)
  }

  protected notify(notice: Notice): void {
    for (const listener of [...this.notices]) listener(notice)
  }

  /** An event of the session. */
  protected applyEvent(message: HostMessage): void {
    switch (message.t) {
      case 'answering':
        this.answers.value = message.answers
        return
      case 'state': {
        const info = this.info.peek()
        if (info) this.info.value = afterState(info, message)
        return
      }
      case 'migration': {
        const info = this.info.peek()
        if (info) this.info.value = afterMigration(info, message)
        return
      }
      case 'operators': {
        const { operators, observers, size } = message
        this.operators.value = { operators, observers, size }
        const info = this.info.peek()
        if (info) this.info.value = { ...info, operators, observers, size }
        return
      }
      case 'turn_event':
        this.setTurn(message.turn, message.yours)
        this.notify({
          kind: 'turn',
          step: message.step,
          actor: message.actor,
          reason: message.reason,
          yours: message.yours,
          at: message.at,
        })
        return
      case 'turn_lost':
        return this.notify({ kind: 'turn_lost', by: message.by, reason: message.reason, at: message.at })
      case 'handed_over':
        return this.notify({ kind: 'handed_over', handoff: message.handoff })
    }
  }

  protected setTurn(turn: TurnInfo, yours: boolean): TurnState {
    const state = { turn, yours, waiting: turn.queue.some(({ actor }) => actor === this.actorId) }
    this.turn.value = state
    const info = this.info.peek()
    if (info)
      this.info.value = { ...info, holder: turn.holder_name, waiting: turn.queue.map(({ name }) => name) }
    const named = [turn.holder, ...turn.queue.map(({ actor }) => actor)].filter(Boolean)
    const known = new Set(this.actors.peek().map(({ id }) => id))
    if (named.some((id) => !known.has(id))) void this.machineLink.refreshActors()
    return state
  }

  protected setInfo(info: SessionInfo): void {
    this.info.value = info
    this.operators.value = { operators: info.operators, observers: info.observers, size: info.size }
    this.machineLink.sessions.shown(info)
  }

  protected setSize(size: Size): void {
    const info = this.info.peek()
    if (info) this.info.value = { ...info, size }
    const { operators, observers } = this.operators.peek() ?? { operators: 0, observers: 0 }
    this.operators.value = { operators, observers, size }
  }

  protected canonical(): Size {
    return this.operators.peek()?.size ?? { cols: 80, rows: 24 }
  }
}
