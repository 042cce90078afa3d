// The sessions of one machine: as the host listed them, updated by its events. The last line of each screen is requested
// only while the overview is visible.

import { signal } from '@preact/signals-core'
import type { Progress, Reaping, SessionInfo, WaitingInfo } from './api'
import { afterMigration, afterState } from './state-event'
import type { AnswerTo, HostMessage, RequestFields, RequestTag } from '../wire/messages'

const SOON_MS = 250 // several events come at once: one request covers all of them
const LOOK_MS = 3000 // between two looks at what sessions print, while somebody watches
const PROGRESS_MS = 3000 // it comes far oftener: what is older is over, and we were not told
const SCREENS_AT_ONCE = 24
const ABOVE_LINES = 12 // more entries than a menu with buttons may have
const OVER = new Set<string>(['ended', 'lost']) // states that nothing leads out of

export interface Known {
  info: SessionInfo
  lastLine: string
  seenAt: number
  above?: readonly string[] // the lines over the cursor's, the nearest last
  asking?: readonly WaitingInfo[] // who waits for the turn, with what they say
  reaping?: Reaping | null // until it is used again
  progress?: Progress | null // of a checkpoint or restore of it that takes a while
}

function lacksWords({ info, asking = [] }: Known): boolean {
  return info.waiting.join() !== asking.map(({ name }) => name).join()
}

type Ask = <T extends RequestTag>(tag: T, fields: RequestFields<T>) => Promise<AnswerTo<T>>

export class SessionList {
  readonly known = signal<Known[]>([], {
    watched: () => {
      this.isWatched = true
      this.look()
    },
    unwatched: () => {
      this.isWatched = false
      clearTimeout(this.looking)
    },
  })
  private readonly due = new Map<string, ReturnType<typeof setTimeout>>()
  private readonly screens = new Map<string, number>() // output offset at which a last line was taken
  private isWatched = false
  private looking: ReturnType<typeof setTimeout> | undefined

  constructor(private readonly ask: Ask) {}

  find(named: string): SessionInfo | null {
    const all = this.known.peek().map(({ info }) => info)
    return (
      all.find(({ id }) => id === named) ??
      all.find(({ name, state }) => name === named && !OVER.has(state)) ??
      null
    )
  }

  /** The complete list. */
  listed(sessions: SessionInfo[]): void {
    const before = new Map(this.known.peek().map((each) => [each.info.id, each]))
    const seenAt = Date.now() / 1000
    this.known.value = sessions.map((info) => {
      const {
        lastLine = '',
        above = [],
        asking = [],
        reaping = null,
        progress: told = null,
      } = before.get(info.id) ?? {}
      const progress = told && told.seenAt > seenAt - PROGRESS_MS / 1000 ? told : null
      return { info, lastLine, above, asking, seenAt, reaping: info.pinned ? null : reaping, progress }
    })
    for (const each of this.known.peek()) if (lacksWords(each)) void this.askers(each.info.id)
  }

  /** One as the host shows it now. */
  shown(info: SessionInfo): void {
    const seenAt = Date.now() / 1000
    const all = this.known.peek()
    if (all.some((each) => each.info.id === info.id)) this.change(info.id, () => info)
    else this.known.value = [...all, { info, lastLine: '', seenAt }]
  }

  onHostMessage(message: HostMessage): void {
    if (message.t === 'state') {
      this.change(message.session, (info) => afterState(info, message))
      this.setReaping(message.session, null)
      this.soon(message.session)
    } else if (message.t === 'operators') {
      const { session, operators, observers, size } = message
      this.change(session, (info) => ({ ...info, operators, observers, size }))
      if (operators > 0) this.setReaping(session, null)
    } else if (message.t === 'migration') {
      this.change(message.session, (info) => afterMigration(info, message))
      this.soon(message.session)
    } else if (message.t === 'rehomed') {
      this.soon(message.session) // the epoch comes with it
    } else if (message.t === 'reap_notice') {
      this.setReaping(message.session, message)
    } else if (message.t === 'progress') {
      const { session, over, ...told } = message
      this.with(session, { progress: over ? null : { ...told, seenAt: Date.now() / 1000 } })
    } else if (message.t === 'turn_event') {
      const { session, turn } = message
      const waiting = turn.queue.map(({ name }) => name)
      this.change(session, (info) => ({ ...info, holder: turn.holder_name, waiting }))
      this.with(session, { asking: turn.queue })
    } else if (message.t === 'sessions') {
      this.listed(message.sessions)
    } else if (message.t === 'dropped') {
      void this.refresh()
    }
  }

  /** Ask the host now. */
  async refresh(): Promise<void> {
    try {
      this.listed((await this.ask('list', { ended: true, lost: true })).sessions)
    } catch {
      // Offline: what was known stays, and is shown as such.
    }
  }

  private setReaping(session: string, reaping: Reaping | null): void {
    this.with(session, { reaping })
  }

  private with(session: string, changed: Partial<Known>): void {
    this.known.value = this.known
      .peek()
      .map((each) => (each.info.id === session ? { ...each, ...changed } : each))
  }

  /** A list has the names of those who ask for the turn; what they say has to be asked for. */
  private async askers(session: string): Promise<void> {
    try {
      this.with(session, { asking: (await this.ask('turn', { session })).turn.queue })
    } catch {
      // Their names stand there without it.
    }
  }

  private change(session: string, to: (info: SessionInfo) => SessionInfo): void {
    const seenAt = Date.now() / 1000
    this.known.value = this.known
      .peek()
      .map((each) => (each.info.id === session ? { ...each, info: to(each.info), seenAt } : each))
  }

  /** Events carry the state; command, directory and title need a request. */
  private soon(session: string): void {
    if (this.due.has(session)) return
    const timer = setTimeout(async () => {
      this.due.delete(session)
      try {
        this.shown((await this.ask('show', { session })).info)
      } catch {
        // It ended meanwhile, or the connection did.
      }
    }, SOON_MS)
    this.due.set(session, timer)
  }

  private look(): void {
    clearTimeout(this.looking)
    const visible = typeof document === 'undefined' || document.visibilityState === 'visible'
    const looked = visible ? this.lookOnce() : Promise.resolve()
    void looked.finally(() => {
      clearTimeout(this.looking)
      if (this.isWatched) this.looking = setTimeout(() => this.look(), LOOK_MS)
    })
  }

  private async lookOnce(): Promise<void> {
    await this.refresh()
    const changed = this.known
      .peek()
      .map(({ info }) => info)
      .filter(({ id, state, output_offset }) => !OVER.has(state) && this.screens.get(id) !== output_offset)
    await Promise.all(changed.slice(0, SCREENS_AT_ONCE).map((info) => this.lastLine(info)))
  }

  private async lastLine(info: SessionInfo): Promise<void> {
    try {
      const { text, offset, cursor_row } = await this.ask('screen', { session: info.id })
      this.screens.set(info.id, offset)
      const lastLine = text.trimEnd().split('\n').at(-1)?.trim() ?? ''
      const above = text.split('\n').slice(Math.max(0, cursor_row - ABOVE_LINES), cursor_row)
      this.with(info.id, { lastLine, above })
    } catch {
      // The card has no last line then.
    }
  }
}
