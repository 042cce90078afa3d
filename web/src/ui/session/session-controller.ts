// The state of one open session that the parts of the page share: its handle, typed input, notices. It owns no
// element; the terminal registers itself when it is mounted.

import { signal } from '@preact/signals'
import type { Handoff, Notice, Receipt, SessionHandle } from '../../hold/api'
import { clearToasts, toast, toastError } from '../parts/toast'
import { modified, keyText, NO_MODIFIERS, type Modifiers, type NamedKey } from '../terminal/keys'
import type { PredictedTyping } from '../terminal/predicted-typing'
import type { Point } from '../terminal/lens-geometry'
import type { LensView } from '../terminal/lens-view'
import type { Screen } from '../terminal/screen'
import type { TouchSelection } from '../terminal/touch-selection'
import { learnHues } from '../text/actor-colour'
import { hasNews, othersActed } from '../text/handoff'
import { sanitize } from '../text/sanitize'
import { Checkpointing } from './checkpointing'
import { EMPTY, type TimelineModel } from './timeline-model'
import type { Rail } from './rail'
import { findCommand, locate } from './find-command'
import { JournalReader } from './journal-reader'
import { TypedInput } from './typed-input'

export type Tab = 'timeline' | 'processes' | 'operators' | 'inbox'

/** The command that printed what is selected, and where that ends in the pane. */
export interface Pointed {
  readonly command: number
  readonly at: Point
}

const HINT_MS = 8000
const PASTE_ASK_CHARS = 100_000 // a larger paste is likely a slip: ask first
const FLASH_MS = 2500
const END_NOTICE_MS = 600 // the notice that a session ended follows that of its lost inputs

export class SessionController {
  readonly hint = signal('')
  readonly catchUp = signal<Handoff | null>(null)
  readonly leftAt = signal<number | null>(null) // what is newer is marked in the timeline, once there is something
  readonly receipt = signal<Receipt | null>(null)
  readonly timeline = signal<TimelineModel>(EMPTY)
  readonly tab = signal<Tab>('timeline')
  readonly panel = signal(false)
  readonly modifiers = signal<Modifiers>(NO_MODIFIERS)
  readonly pasteAsk = signal<string | null>(null)
  readonly pasting = signal<{ sent: number; total: number } | null>(null)
  readonly pasteSheet = signal<string | null>(null) // its text, while it is open
  readonly finding = signal(false)
  readonly selected = signal('') // by a finger; a mouse has its own ways to copy
  readonly link = signal('') // the address of the link that was tapped
  readonly unread = signal<number | null>(null) // lines printed since the view left the end; null: it is there
  readonly ready = signal(false)
  readonly certifying = signal(false) // its certificate is shown
  readonly chosen = signal<number | null>(null) // the command that is marked in the timeline, and beside the terminal
  readonly pointed = signal<Pointed | null>(null) // of what is selected in the terminal
  readonly fullScreen = signal(false) // a program draws on the alternate screen
  readonly checkpointing: Checkpointing
  screen: Screen | null = null
  lens: LensView | null = null
  selection: TouchSelection | null = null
  predicted: PredictedTyping | null = null
  rail: Rail | null = null

  private readonly typing: TypedInput
  private readonly reader: JournalReader
  private readonly undo: (() => void)[] = []
  private hintTimer = 0

  /** `followed`: its page was open when the session fell asleep or was lost. */
  constructor(
    readonly handle: SessionHandle,
    private readonly followed = false,
  ) {
    const { info, turn, observing, link } = handle
    const way = {
      info,
      turn,
      observing,
      link,
      input: (bytes: Uint8Array) => this.send(bytes),
      requestTurn: () => handle.requestTurn(),
    }
    this.typing = new TypedInput(way, (text) => this.show(text), toastError)
    this.checkpointing = new Checkpointing(handle)
    this.reader = new JournalReader(handle, this.timeline)
    this.undo.push(handle.onNotice((notice) => this.onNotice(notice)))
    this.undo.push(this.watchHalt())
    this.undo.push(handle.actors.subscribe(learnHues))
    this.undo.push(this.reader.start((handoff, again) => this.returned(handoff, again)))
  }

  close(): void {
    for (const each of this.undo) each()
    clearTimeout(this.hintTimer)
    this.handle.close()
  }

  /** Whoever resumed it: what was said of the halt is no longer so. */
  private watchHalt(): () => void {
    let halted = false
    return this.handle.info.subscribe((info) => {
      const before = halted
      halted = info?.state === 'halted'
      if (!before || halted) return
      this.hint.value = ''
      if (this.receipt.value?.scope) this.receipt.value = null
    })
  }

  /** The session printed something. */
  printed(): void {
    this.reader.printed()
  }

  /** From the terminal's keyboard, a character or more. */
  typed(text: string): void {
    const held = this.modifiers.value
    this.modifiers.value = NO_MODIFIERS
    this.typing.text(modified(text, held))
    this.lens?.followCursor()
    clearToasts()
  }

  binary(text: string): void {
    this.typing.binary(text)
  }

  key(key: NamedKey): void {
    const application = this.screen?.term.modes.applicationCursorKeysMode ?? false
    const held = this.modifiers.value
    this.modifiers.value = NO_MODIFIERS
    this.typing.text(keyText(key, held, application))
    this.lens?.followCursor()
  }

  hold(modifier: keyof Modifiers): void {
    this.modifiers.value = { ...this.modifiers.value, [modifier]: !this.modifiers.value[modifier] }
  }

  paste(text: string): void {
    if (text === '') return
    if (text.length > PASTE_ASK_CHARS) this.pasteAsk.value = text
    else void this.pasteNow(text)
  }

  async pasteNow(text: string): Promise<void> {
    this.pasteAsk.value = null
    const turn = this.handle.turn.value
    try {
      if (turn && turn.turn.holder && !turn.yours) {
        const got = await this.handle.requestTurn()
        if (!got.yours) {
          this.show(
            `${sanitize(got.turn.holder_name, 64)} holds the turn. You are in the queue; nothing was pasted.`,
          )
          return
        }
      }
      await this.handle.paste(text, (sent, total) => (this.pasting.value = { sent, total }))
    } catch (error) {
      toastError(error)
    } finally {
      this.pasting.value = null
    }
  }

  /** To where the session prints. */
  latest(): void {
    this.screen?.term.scrollToBottom()
    this.lens?.followCursor()
  }

  /** Awaits an action and shows its error, if it fails. */
  async act<T>(what: Promise<T>): Promise<T | null> {
    try {
      return await what
    } catch (error) {
      toastError(error)
      return null
    }
  }

  async seize(halt: boolean): Promise<void> {
    this.receipt.value = await this.act(this.handle.seize({ halt }))
  }

  async halt(): Promise<void> {
    this.receipt.value = await this.act(this.handle.halt())
  }

  /** From being reaped, however long nobody uses it. */
  async keep(pinned: boolean): Promise<void> {
    const done = await this.act(this.handle.pin(pinned))
    if (done) toast(pinned ? 'It is kept, however long nobody uses it' : 'It is no longer kept')
  }

  async resume(): Promise<void> {
    this.receipt.value = null
    await this.act(this.handle.resume())
  }

  /** Scrolls to the first line a command printed. */
  async jump(command: number): Promise<void> {
    const screen = this.screen
    if (!screen) return
    if (!this.ready.value) {
      toast('The session ended before this page was opened: only its last screen is here')
      return
    }
    if (screen.term.buffer.active.type !== 'normal') {
      toast('A full-screen program is covering the scrollback')
      return
    }
    const line = this.rail?.lineOf(command) ?? (await this.find(command, screen))
    if (line === null) {
      toast('That command is no longer in the scrollback')
      return
    }
    this.chosen.value = command
    screen.term.scrollToLine(Math.max(0, line - 1))
    this.lens?.top()
    this.flash(line)
  }

  private async find(command: number, screen: Screen): Promise<number | null> {
    const found = await this.act(findCommand((first, last) => this.handle.blame(first, last), command))
    return found && locate((index) => screen.line(index), screen.term.buffer.active.length, found)
  }

  /** From a line of the terminal to its command in the timeline. */
  showCommand(command: number): void {
    this.pointed.value = null
    this.chosen.value = command
    this.tab.value = 'timeline'
    this.panel.value = true
  }

  show(text: string): void {
    this.hint.value = text
    clearTimeout(this.hintTimer)
    this.hintTimer = window.setTimeout(() => (this.hint.value = ''), HINT_MS)
  }

  private flash(line: number): void {
    const term = this.screen!.term
    const { baseY, cursorY } = term.buffer.active
    const marker = term.registerMarker(line - baseY - cursorY)
    const mark = marker && term.registerDecoration({ marker, width: term.cols, backgroundColor: '#2e7d78' })
    setTimeout(() => {
      mark?.dispose()
      marker?.dispose()
    }, FLASH_MS)
  }

  /** `again`: this page only lost its connection. */
  private returned(handoff: Handoff, again: boolean): void {
    const news =
      again || this.followed ? othersActed(handoff, this.handle.me.value?.name ?? '') : hasNews(handoff)
    if (news) this.catchUp.value = handoff
    if (news && handoff.since_at !== null) this.leftAt.value = handoff.since_at
  }

  private onNotice(notice: Notice): void {
    this.reader.soon()
    if (notice.kind === 'turn') this.onTurnNotice(notice)
    else if (notice.kind === 'turn_lost') {
      const why = !notice.reason
        ? ''
        : notice.reason === 'idle'
          ? ' because it was idle'
          : `: ${sanitize(notice.reason, 200)}`
      toast(`${sanitize(notice.by, 64)} took the turn${why}`, 'attention')
    } else if (notice.kind === 'handed_over') {
      if (hasNews(notice.handoff)) this.catchUp.value = notice.handoff
    } else if (notice.kind === 'refused') {
      this.predicted?.reset()
      if (notice.trouble.code === 'turn_held') this.typing.refused()
      else toast(`${notice.trouble.message}. Nothing was typed.`, 'danger')
    } else if (notice.kind === 'input_unknown') {
      setTimeout(() => this.warnInputUnknown(), END_NOTICE_MS)
    } else if (notice.kind === 'not_sent') {
      toast('Some keys typed while offline were dropped. They never reached the session.', 'attention')
    }
  }

  private send(bytes: Uint8Array): void {
    this.handle.input(bytes)
    this.predicted?.typed(new TextDecoder().decode(bytes))
  }

  private warnInputUnknown(): void {
    // The last line typed into a session that ended by it: that it ended is the answer.
    if (this.handle.link.value.at === 'ended') return
    toast(
      'The connection was lost. Check whether your last keys were typed. They are not sent again.',
      'danger',
    )
  }

  private onTurnNotice(notice: Extract<Notice, { kind: 'turn' }>): void {
    const who = sanitize(notice.actor, 64)
    // A request is shown in the turn bar, with its buttons.
    if (notice.yours && notice.step !== 'request' && notice.step !== 'seize') {
      this.hint.value = ''
      toast('You have the turn', 'good')
    } else if (notice.step === 'seize' && !notice.yours) {
      toast(`${who} seized the turn`, 'attention')
    }
    if (notice.yours) this.hint.value = ''
  }
}
