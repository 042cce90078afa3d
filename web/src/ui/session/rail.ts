// The rail beside the terminal: who ran what, in the hue of whoever did it. Beside the first line of a command its actor, time and
// outcome, where the line leaves room. It is drawn without a component: it moves with each line that is printed, and nothing may
// come before an echo.

import { effect } from '@preact/signals'
import type { IMarker } from '@xterm/xterm'
import type { BlameLine, SessionHandle } from '../../hold/api'
import { type Hue, hueOf } from '../text/actor-colour'
import { clock, took } from '../text/durations'
import { sanitize } from '../text/sanitize'
import type { LensView } from '../terminal/lens-view'
import type { Screen } from '../terminal/screen'
import { type Block, blocksOf, shiftOf } from './rail-model'
import type { Command, TimelineModel } from './timeline-model'

const SOON_MS = 300 // what a command prints last comes with its end
const BETWEEN_MS = 2000 // two questions at the least
const SHARE = 10 // a host that has much to look through is asked so much less often than it takes
const LINES_MAX = 2000 // asked for: from the end
const BLOCKS_MAX = 300

interface Placed {
  readonly command: number
  readonly actor: string
  readonly start: IMarker
  readonly lines: number
}

/** What all of them are drawn by, in pixels but for the first line. */
interface Drawn {
  readonly viewportY: number
  readonly height: number // of a line
  readonly y: number // of the first line
  readonly room: number // for words beside a line, with the line
}

interface Facts {
  readonly handle: Pick<SessionHandle, 'blame' | 'actors' | 'link' | 'info'>
  readonly timeline: { readonly value: TimelineModel; peek(): TimelineModel }
  readonly ready: { readonly value: boolean }
  readonly fullScreen: { readonly value: boolean }
  readonly chosen: { readonly value: number | null; peek(): number | null }
}

export class Rail {
  private placed: readonly Placed[] = []
  private total = 0 // lines that the host had
  private drawn = ''
  private timer: ReturnType<typeof setTimeout> | undefined
  private due = Infinity // when that fires
  private notBefore = 0
  private looked = false
  private asking = false
  private again = false
  private closed = false
  private readonly bars: HTMLElement[] = []
  private readonly notes: HTMLElement[] = []
  private readonly widths = new WeakMap<HTMLElement, number>() // of notes: asking the browser for it each time is dear
  private readonly undo: (() => void)[] = []

  constructor(
    private readonly facts: Facts,
    private readonly screen: Screen,
    private readonly lens: LensView,
    private readonly rail: HTMLElement, // for the bars, at the left edge of the pane
    private readonly beside: HTMLElement, // for the notes, at its right edge; not shown where there is no room
  ) {
    let known = ''
    this.undo.push(
      effect(() => {
        const last = facts.timeline.value.commands.at(-1)
        const now = `${facts.ready.value} ${last?.number} ${last?.endedAt}`
        if (facts.ready.value && now !== known) {
          this.draw(true) // how a command ended is known before its last line is
          this.soon()
        }
        known = now
      }),
      effect(() => {
        void [facts.chosen.value, facts.fullScreen.value, facts.handle.actors.value, lens.place.value]
        this.draw(true)
      }),
    )
    const seen = (): void => {
      if (!document.hidden) this.soon()
    }
    document.addEventListener('visibilitychange', seen)
    this.undo.push(() => document.removeEventListener('visibilitychange', seen))
    const rendered = screen.term.onRender(() => this.draw(false))
    this.undo.push(() => rendered.dispose())
  }

  close(): void {
    this.closed = true
    clearTimeout(this.timer)
    this.forget()
    for (const each of this.undo) each()
    this.rail.replaceChildren()
    this.beside.replaceChildren()
  }

  /** The terminal was painted anew, or has another size: nothing is where it was. */
  moved(): void {
    this.forget()
    this.draw(true)
    this.soon()
  }

  /** The command that a line of the terminal belongs to. */
  commandAt(line: number): number | null {
    return this.spans().findLast(({ first, last }) => line >= first && line <= last)?.command ?? null
  }

  /** The first line of a command, if it is here. */
  lineOf(command: number): number | null {
    return this.spans().find((span) => span.command === command)?.first ?? null
  }

  // -- what belongs to whom -------------------------------------------------------------------------

  private soon(): void {
    const due = Math.max(Date.now() + (this.looked ? SOON_MS : 0), this.notBefore)
    if (this.closed || due >= this.due) return
    clearTimeout(this.timer)
    this.due = due
    this.timer = setTimeout(() => {
      this.due = Infinity
      void this.look()
    }, due - Date.now())
  }

  private async look(): Promise<void> {
    if (document.hidden) return // asked when it is seen
    if (this.asking) {
      this.again = true
      return
    }
    this.asking = true
    const began = Date.now()
    try {
      const lines = await this.latest()
      this.looked = true
      if (!this.closed) this.place(lines)
    } catch {
      // The terminal needs no rail; the next command brings another look.
    } finally {
      this.asking = false
      this.notBefore = Date.now() + Math.max(BETWEEN_MS, SHARE * (Date.now() - began))
      if (this.again) {
        this.again = false
        this.soon()
      }
    }
  }

  private async latest(): Promise<BlameLine[]> {
    const from = Math.max(1, this.total - LINES_MAX / 2)
    let found = await this.facts.handle.blame(from)
    const before = found.total - found.lines.length - from + 1
    // It held less than was thought, or has more than one answer takes.
    if (found.lines.length === 0 || before > 0)
      found = await this.facts.handle.blame(Math.max(1, found.total - LINES_MAX / 2))
    this.total = found.total
    return found.lines
  }

  private place(lines: readonly BlameLine[]): void {
    this.forget()
    const { term } = this.screen
    const buffer = term.buffer.normal
    if (term.buffer.active.type === 'normal') {
      const count = buffer.length
      const shift = shiftOf(lines, count, (index) => this.screen.line(index))
      const blocks = shift === null ? [] : blocksOf(lines, shift).slice(-BLOCKS_MAX)
      const cursor = buffer.baseY + buffer.cursorY
      this.placed = blocks.filter(({ first }) => first < count).map((block) => this.marked(block, cursor))
    }
    this.draw(true)
  }

  private marked({ command, actor, first, last }: Block, cursor: number): Placed {
    const start = this.screen.term.registerMarker(first - cursor)
    return { command, actor, start, lines: last - first + 1 }
  }

  private forget(): void {
    for (const { start } of this.placed) start.dispose()
    this.placed = []
  }

  /** Where they are now. What still runs goes on to the cursor; where nothing does, the cursor's line is the next command's. */
  private spans(): Block[] {
    const { baseY, cursorY } = this.screen.term.buffer.active
    const cursor = baseY + cursorY
    const kept = this.placed.filter(({ start }) => !start.isDisposed && start.line >= 0)
    return kept.map(({ command, actor, start, lines }, index) => {
      const first = start.line
      const last = first + lines - 1
      if (index < kept.length - 1) return { command, actor, first, last }
      const runs = this.command(command)?.endedAt === null
      const end = runs ? Math.max(last, cursor) : Math.min(last, Math.max(first, cursor - 1))
      return { command, actor, first, last: end }
    })
  }

  private command(number: number): Command | undefined {
    return this.facts.timeline.peek().commands.findLast((one) => one.number === number)
  }

  // -- drawing --------------------------------------------------------------------------------------

  private draw(changed: boolean): void {
    const { viewportY, baseY, cursorY, type } = this.screen.term.buffer.active
    const { height } = this.screen.cursor()
    const { y } = this.lens.place.peek()
    const now = `${viewportY} ${baseY + cursorY} ${height} ${y} ${type}`
    if (this.closed || (!changed && (now === this.drawn || this.placed.length === 0))) return
    this.drawn = now
    const rows = this.screen.term.rows
    const seen =
      type === 'normal' ? this.spans().filter((b) => b.last >= viewportY && b.first < viewportY + rows) : []
    const room = seen.length > 0 ? this.beside.clientWidth : 0 // asked before anything is moved
    seen.forEach((block, index) => this.drawBlock(index, block, { viewportY, height, y, room }))
    for (const list of [this.bars, this.notes]) for (const each of list.slice(seen.length)) each.hidden = true
  }

  private drawBlock(index: number, block: Block, { viewportY, height, y, room }: Drawn): void {
    const bar = this.pooled(this.bars, this.rail, index, 'rail-bar')
    const note = this.pooled(this.notes, this.beside, index, 'rail-note')
    const actor = this.facts.handle.actors.peek().find(({ name }) => name === block.actor)
    const hue = hueOf(actor?.colour, actor?.id || block.actor)
    const [first, last] = [
      Math.max(block.first, viewportY),
      Math.min(block.last, viewportY + this.screen.term.rows - 1),
    ]
    const top = (block.first - viewportY) * height + y
    bar.style.transform = `translateY(${Math.round((first - viewportY) * height + y) + 1}px)`
    bar.style.height = `${Math.round((last - first + 1) * height) - 2}px`
    bar.style.setProperty('--hue', hue['--hue'])
    bar.dataset.command = String(block.command)
    bar.dataset.actor = block.actor
    bar.classList.toggle('is-chosen', block.command === this.facts.chosen.peek())
    note.style.transform = `translateY(${Math.round(top)}px)`
    note.style.height = `${height}px`
    const said = `${block.actor} ${this.said(block.command)}`
    if (note.dataset.said !== said) {
      note.dataset.said = said
      note.replaceChildren(
        avatar(block.actor, actor?.kind, hue),
        [sanitize(block.actor, 40), this.said(block.command)].filter(Boolean).join(' · '),
      )
      this.widths.set(note, note.offsetWidth)
    }
    const written = this.screen.line(block.first).length * this.screen.cursor().width
    const width = this.widths.get(note) ?? 0
    note.hidden = width === 0 || top < y - 1 || written + width > room
  }

  /** `19:16 · 41 s`. */
  private said(number: number): string {
    const command = this.command(number)
    if (!command) return ''
    const at = clock(command.beganAt, Date.now() / 1000).replace(/:\d\d$/, '')
    if (command.endedAt === null) return `${at} · running`
    const failed = command.status ? `status ${command.status} · ` : ''
    return `${at} · ${failed}${took(command.endedAt - command.beganAt)}`
  }

  private pooled(pool: HTMLElement[], into: HTMLElement, index: number, name: string): HTMLElement {
    const one = pool[index] ?? document.createElement('span')
    if (!pool[index]) {
      one.className = name
      pool.push(one)
      into.append(one)
    }
    one.hidden = false
    return one
  }
}

function avatar(name: string, kind: string | undefined, hue: Hue): HTMLElement {
  const face = document.createElement('span')
  face.className = `avatar ${kind === 'agent' || kind === 'service' ? 'is-agent' : ''}`
  face.textContent = [...sanitize(name, 64).trim()][0]?.toUpperCase() ?? '?'
  for (const [property, value] of Object.entries(hue)) face.style.setProperty(property, value)
  return face
}
