// Predicts what a key will show before its echo arrives: for operators far away.
//
// The same machine as src/holdfast/sdk/prediction/machine.py, which says how it guesses and why a password is never
// drawn; docs/prediction-vectors.json holds both to it. Pure: keys, the host's word that it has them, and the line
// of the cursor after each piece of output come in, with the time in seconds; what to draw over that line comes
// out. It draws nothing and has no clock.

export const GRACE_S = 0.25 // between the host's word that it has a key and its echo; then it is not echoed
const PASTE_BYTES = 64 // more than this at once was not typed
export const KEYS_MAX = 256 // in flight; an operator that far ahead is not looking at the screen
export const NO_GUESS = '\0' // in a line: a cell that holds anything but one narrow character

const BACK = '\x7f'
const LEFT = '\x1b[D'
const RIGHT = '\x1b[C'
const OTHER = '' // whatever else: its effect cannot be foreseen
const GAP = '  '

// One cell wide in every terminal: Latin, Greek, Cyrillic. What is not here is not predicted.
const NARROW = /^[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0377\u0384-\u0482\u048a-\u052f]$/
// eslint-disable-next-line no-control-regex -- keys are control sequences
const ARROW = /\x1b[[O]([CD])/y
// Shown by programs in place of what is typed: that they came back proves nothing.
const MASKS = new Set(' *.#xX\u00b7')

/** The row of the cursor as the session has drawn it: one character per column, blanks as spaces. */
export interface Line {
  row: number
  col: number
  text: string
  plain: boolean // a guess may be drawn there at all: see the machine in Python
}

/** To be drawn over the row of the cursor, which really is at `col`. */
export interface Overlay {
  row: number
  col: number
  cells: [col: number, char: string][]
  cursor: number // where the cursor is to be seen
}

interface Key {
  seq: number
  key: string
  ahead: boolean // typed while it was not known what it would be typed into
  at: number | null // when the host said that it has it,
  offset: number // and how much had been printed then
}

interface State {
  col: number
  text: string
}

export class Prediction {
  private keys: Key[] = []
  private states: State[] = [] // after each of the first keys, as far as can be foreseen
  private base: Line = { row: 0, col: 0, text: '', plain: false } // as it was last seen
  private floor = 0 // the leftmost column typed into, as far as is known
  private offset = 0 // of the next byte of output
  private trusted = false
  private withheld = false
  private inserts = true // a character in the middle moves the rest on

  /** Whether the line is of interest after the next output. */
  get looks(): boolean {
    return this.trusted || this.keys.length > 0
  }

  /** This text is on its way as input `seq`; `line` is what the session shows now. */
  typed(seq: number, data: string, line: Line): void {
    if (this.withheld || !line.plain) {
      this.reset()
      return
    }
    if (this.keys.length === 0) {
      if (!this.isAsItWas(line)) this.trusted = false
      this.base = line
      if (!this.trusted) this.floor = line.col
    }
    for (const key of keysIn(data)) {
      const ahead = this.keys.some((each) => each.key === OTHER || each.ahead)
      this.keys.push({ seq, key, ahead, at: null, offset: 0 })
      this.foresee()
    }
    if (this.keys.length > KEYS_MAX) this.reset()
  }

  /** The host has this input and all before it; so much had been printed. */
  accepted(seq: number, offset: number, now: number): void {
    for (const key of this.keys) {
      if (key.seq <= seq && key.at === null) {
        key.at = now
        key.offset = offset
      }
    }
    this.settle()
  }

  /** Output up to `offset` was shown; now the cursor's line is this. */
  printed(offset: number, line: Line): void {
    this.offset = offset
    if (!this.looks) return
    if (!line.plain) {
      this.reset()
      return
    }
    if (this.isAsItWas(line)) {
      this.base = line
    } else {
      const count = line.row === this.base.row ? this.states.findIndex((each) => isAt(line, each)) + 1 : 0
      if (count > 0) {
        this.confirm(count, line)
      } else {
        this.base = line
        this.distrust()
      }
    }
    this.foresee()
    this.settle()
  }

  /** A secret is asked for, or the turn is blind; or no longer. */
  withhold(yes: boolean): void {
    this.withheld = yes
    if (yes) this.reset()
  }

  /** Something came in between: what is in flight is unknown. */
  reset(): void {
    this.keys = []
    this.states = []
    this.trusted = false
  }

  /** Keys that the host has had for so long are not going to be echoed. */
  tick(now: number): void {
    const waiting = this.keys.findIndex((key) => key.at === null || now < key.at + GRACE_S)
    const count = waiting < 0 ? this.keys.length : waiting
    if (count === 0) return
    const last = this.states[count - 1]
    this.keys.splice(0, count)
    // Keys that undid one another leave the line as it was: nothing was wrong.
    if (last === undefined || last.col !== this.base.col || last.text !== this.base.text) this.distrust()
    this.foresee()
  }

  /** When `tick` has something to do; null: not before something else happens. */
  wakeAt(): number | null {
    const at = this.keys[0]?.at ?? null
    return at === null ? null : at + GRACE_S
  }

  /** What to draw now, instead of what was drawn before. */
  overlay(): Overlay | null {
    const last = this.states.at(-1)
    if (!this.trusted || last === undefined) return null
    const { row, col, text } = this.base
    const cells: Overlay['cells'] = []
    for (let at = 0; at < text.length; at++) {
      if (last.text[at] !== text[at]) cells.push([at, last.text[at]!])
    }
    return cells.length > 0 || last.col !== col ? { row, col, cells, cursor: last.col } : null
  }

  /** The first keys have come back as they were typed. */
  private confirm(count: number, line: Line): void {
    const letters = this.keys.slice(0, count).filter((each) => each.key.length === 1 && each.key !== BACK)
    if (letters.some((each) => !each.ahead && !MASKS.has(each.key))) this.trusted = true
    const right = moving(line.text.slice(line.col))
    if (count === 1 && letters.length === 1 && right !== '') {
      // Else a program completes what is typed by itself, and the rest is its own offer.
      this.inserts = right === moving(this.base.text.slice(this.base.col))
    }
    this.keys.splice(0, count)
    this.base = line
  }

  private isAsItWas(line: Line): boolean {
    return line.row === this.base.row && isAt(line, this.base)
  }

  private distrust(): void {
    this.trusted = false
    this.floor = this.base.col
  }

  /** A key of unknown effect has had its effect once something was printed after it. */
  private settle(): void {
    for (;;) {
      const first = this.keys[0]
      if (first === undefined || first.key !== OTHER) return
      if (first.at === null || first.offset >= this.offset) return
      this.keys.shift()
      this.distrust()
      this.foresee()
    }
  }

  /** The lines to come, from the one there is. */
  private foresee(): void {
    this.states = []
    let state: State = this.base
    for (const [at, key] of this.keys.entries()) {
      const following = key.key === OTHER ? null : this.after(state, key.key)
      if (following === null) {
        key.key = OTHER
        for (const later of this.keys.slice(at + 1)) later.ahead = true
        return
      }
      state = following
      this.states.push(state)
    }
  }

  /** The line after a key; null if that cannot be said. What is right of the cursor, up to a gap, may move. There
   * has to be a gap, so the last column is never reached, and nothing wraps. */
  private after({ col, text }: State, key: string): State | null {
    const rest = text.slice(col)
    const gap = rest.indexOf(GAP)
    const moves = rest.slice(0, Math.max(gap, 0))
    if (gap < 0 || moves.includes(NO_GUESS)) return null
    if (key === LEFT) return col > this.floor ? { col: col - 1, text } : null
    if (key === RIGHT) return moves !== '' ? { col: col + 1, text } : null
    if (key === BACK) {
      const changed = text.slice(0, Math.max(col - 1, 0)) + moves + ' ' + rest.slice(gap)
      return col > this.floor ? { col: col - 1, text: changed } : null
    }
    const changed = this.inserts ? moves + rest.slice(gap + 1) : rest.slice(1)
    return { col: col + 1, text: text.slice(0, col) + key + changed }
  }
}

/** Whether this character takes one cell in every terminal. */
export function narrow(char: string): boolean {
  return NARROW.test(char)
}

/** What was typed, as far as it can be foreseen what it does. An escape sequence that is not an arrow is one key with
 * all that came with it. */
function keysIn(data: string): string[] {
  if (new TextEncoder().encode(data).length > PASTE_BYTES) return [OTHER]
  const keys: string[] = []
  let at = 0
  while (at < data.length) {
    ARROW.lastIndex = at
    const arrow = ARROW.exec(data)
    if (arrow !== null) {
      keys.push(arrow[1] === 'C' ? RIGHT : LEFT)
      at = ARROW.lastIndex
      continue
    }
    const char = String.fromCodePoint(data.codePointAt(at)!)
    if (char === '\x1b') return [...keys, OTHER]
    if (char === BACK || char === '\b') keys.push(BACK)
    else keys.push(narrow(char) ? char : OTHER)
    at += char.length
  }
  return keys
}

/** What of the rest of a line moves with the cursor: all up to a gap. */
function moving(rest: string): string {
  return rest.split(GAP, 1)[0]!
}

/** Whether the line is as expected, as far as the cursor; what is right of it may be the program's own addition. */
function isAt(line: Line, state: State): boolean {
  return line.col === state.col && line.text.slice(0, state.col) === state.text.slice(0, state.col)
}
