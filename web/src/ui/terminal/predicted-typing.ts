// Keys seen before their echo is here, on the page's terminal (hold/prediction.ts guesses, this shows).
//
// The terminal itself is never written to: guesses lie over its cells as decorations, so there is nothing to undo
// in it. What the page tells: text it sent, that the host has taken all of it, that output was drawn, how long the way
// is, and when nothing may be guessed. It needs no numbers: inputs and pieces of output are counted here.

import type { IDecoration, IDisposable, IMarker, Terminal } from '@xterm/xterm'
import { NO_GUESS, Prediction, narrow, type Line, type Overlay } from '../../hold/prediction'
import { FRAME_S, RoundTrip } from '../../hold/round-trip'

export interface Timers {
  now(): number // seconds of a clock that never goes back
  after(seconds: number, then: () => void): () => void // gives what cancels it
}

const pageTimers: Timers = {
  now: () => performance.now() / 1000,
  after: (seconds, then) => {
    const timer = setTimeout(then, seconds * 1000)
    return () => clearTimeout(timer)
  },
}

export class PredictedTyping {
  private readonly guess = new Prediction()
  private readonly way = new RoundTrip(FRAME_S)
  private readonly hidden: CursorWatch
  private sent = 0
  private pieces = 0
  private cancel: () => void = () => undefined

  constructor(
    private readonly term: Terminal,
    private readonly draw: (overlay: Overlay | null) => void,
    private readonly timers: Timers = pageTimers,
  ) {
    this.hidden = new CursorWatch(term)
  }

  /** A round trip took so long, as measured and not smoothed; guesses are shown where it is long. */
  took(ms: number): void {
    this.way.took(ms / 1000)
    this.show()
  }

  /** This text is on its way to the session, as typed. */
  typed(text: string): void {
    this.guess.typed(++this.sent, text, this.line())
    this.show()
  }

  /** The host has taken all that was sent: nothing is pending. */
  taken(): void {
    this.guess.accepted(this.sent, this.pieces, this.timers.now())
    this.show()
  }

  /** The terminal has drawn some output. */
  drawn(): void {
    this.pieces++
    if (this.guess.looks) this.guess.printed(this.pieces, this.line())
    this.show()
  }

  /** A secret is asked for, or the turn is blind; or no longer. */
  withhold(yes: boolean): void {
    this.guess.withhold(yes)
    this.show()
  }

  /** The connection was lost: the next one may be another way. */
  lost(): void {
    this.way.forget()
    this.reset()
  }

  /** The screen starts over, the size changed, an input was refused. */
  reset(): void {
    this.guess.reset()
    this.show()
  }

  dispose(): void {
    this.cancel()
    this.hidden.dispose()
    this.draw(null)
  }

  private show(): void {
    this.draw(this.way.slow ? this.guess.overlay() : null)
    this.cancel()
    const wake = this.guess.wakeAt()
    if (wake === null) return
    this.cancel = this.timers.after(Math.max(0, wake - this.timers.now()), () => {
      this.guess.tick(this.timers.now())
      this.show()
    })
  }

  private line(): Line {
    const { term } = this
    const { active } = term.buffer
    const row = active.getLine(active.baseY + active.cursorY)
    let text = ''
    const reused = active.getNullCell() // one for the whole line: this is done at every key
    for (let col = 0; col < term.cols; col++) {
      const cell = row?.getCell(col, reused)
      const char = cell?.getChars() || ' '
      text += cell?.getWidth() === 1 && narrow(char) ? char : NO_GUESS
    }
    const { insertMode, originMode, synchronizedOutputMode } = term.modes
    const bent = insertMode || originMode || synchronizedOutputMode || this.hidden.yes
    // Counted from the top of the scrollback: a screen that scrolls is another line.
    const at = active.baseY + active.cursorY
    return { row: at, col: active.cursorX, text, plain: active.type === 'normal' && !bent }
  }
}

/** Whether a program hid the cursor: the terminal does not tell. */
class CursorWatch {
  yes = false
  private readonly undo: IDisposable[]

  constructor(term: Terminal) {
    const set = (yes: boolean) => (params: (number | number[])[]) => {
      if (params.includes(25)) this.yes = yes
      return false // it is the terminal that obeys
    }
    const shown = () => {
      this.yes = false
      return false
    }
    const { parser } = term
    this.undo = [
      parser.registerCsiHandler({ prefix: '?', final: 'l' }, set(true)),
      parser.registerCsiHandler({ prefix: '?', final: 'h' }, set(false)),
      parser.registerCsiHandler({ intermediates: '!', final: 'p' }, shown),
      parser.registerEscHandler({ final: 'c' }, shown),
    ]
  }

  dispose(): void {
    for (const each of this.undo) each.dispose()
  }
}

/** Draws guesses over a terminal: characters underlined, and a cursor of their own. Gives what to call with each new
 * overlay, and with null to take all away. */
export function overlayOn(term: Terminal): (overlay: Overlay | null) => void {
  let marker: IMarker | undefined
  let shown: IDecoration[] = []
  let last = 'null'
  const put = (col: number, text: string, dress: (element: HTMLElement) => void): void => {
    if (!marker) return
    const decoration = term.registerDecoration({ marker, x: col, width: text.length, layer: 'top' })
    if (!decoration) return
    shown.push(decoration)
    decoration.onRender((element) => {
      if (element.textContent !== text) element.textContent = text
      const { fontFamily, fontSize, theme } = term.options
      Object.assign(element.style, {
        fontFamily,
        fontSize: `${fontSize}px`,
        lineHeight: element.style.height,
        whiteSpace: 'pre',
        overflow: 'hidden',
        pointerEvents: 'none',
        color: theme?.foreground ?? '',
        backgroundColor: theme?.background ?? '',
      })
      dress(element)
    })
  }
  return (overlay) => {
    const next = JSON.stringify(overlay)
    if (next === last) return
    last = next
    for (const each of shown) each.dispose()
    marker?.dispose()
    shown = []
    if (overlay === null) return
    marker = term.registerMarker(0)
    for (const [col, text] of runs(overlay)) {
      put(col, text, (element) => {
        element.classList.add('guess')
        element.style.textDecoration = 'underline'
      })
    }
    // Over the real cursor, where no guess is, the cell as it is.
    const under = overlay.cells.find(([col]) => col === overlay.col)
    if (!under && overlay.cursor !== overlay.col) put(overlay.col, cellOf(term, overlay.col), () => undefined)
    const char = overlay.cells.find(([col]) => col === overlay.cursor)?.[1] ?? cellOf(term, overlay.cursor)
    put(overlay.cursor, char, (element) => {
      element.classList.add('guess-cursor')
      const { theme } = term.options
      element.style.color = theme?.cursorAccent ?? theme?.background ?? ''
      element.style.backgroundColor = theme?.cursor ?? theme?.foreground ?? ''
    })
  }
}

/** Neighbouring cells together: column and text. */
function runs(overlay: Overlay): [number, string][] {
  const found: [number, string][] = []
  for (const [col, char] of overlay.cells) {
    const before = found.at(-1)
    if (before && before[0] + before[1].length === col) before[1] += char
    else found.push([col, char])
  }
  return found
}

function cellOf(term: Terminal, col: number): string {
  const { active } = term.buffer
  const char = active
    .getLine(active.baseY + active.cursorY)
    ?.getCell(col)
    ?.getChars()
  return char?.length === 1 ? char : ' '
}
