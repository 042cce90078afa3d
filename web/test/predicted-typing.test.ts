// Keys seen before their echo, on a real terminal of xterm.js: what would be drawn over it, and when.
import xterm, { type Terminal } from '@xterm/xterm'
import { describe, expect, it } from 'vitest'
import { GRACE_S, type Overlay } from '../src/hold/prediction'
import { PredictedTyping } from '../src/ui/terminal/predicted-typing'

const LATE = 200 // ms
const real = xterm as unknown as { Terminal: typeof Terminal }

class Far {
  readonly term = new real.Terminal({ cols: 30, rows: 4, allowProposedApi: true })
  overlay: Overlay | null = null
  now = 0
  private due: { at: number; then: () => void } | null = null
  readonly predicted = new PredictedTyping(this.term, (overlay) => (this.overlay = overlay), {
    now: () => this.now,
    after: (seconds, then) => {
      this.due = { at: this.now + seconds, then }
      return () => (this.due = null)
    },
  })

  async print(text: string): Promise<void> {
    await new Promise<void>((done) => this.term.write(text, done))
    this.predicted.drawn()
  }

  wait(seconds: number): void {
    this.now += seconds
    const due = this.due
    if (due && due.at <= this.now) {
      this.due = null
      due.then()
    }
  }

  /** The row of the cursor with what is drawn over it. */
  get seen(): string | null {
    if (!this.overlay) return null
    const { active } = this.term.buffer
    const cells = [...active.getLine(active.baseY + active.cursorY)!.translateToString()]
    for (const [col, char] of this.overlay.cells) cells[col] = char
    cells.splice(this.overlay.cursor, 0, '|')
    return cells.join('').trimEnd()
  }
}

async function trusted(): Promise<Far> {
  const far = new Far()
  for (let count = 0; count < 3; count++) far.predicted.took(LATE)
  await far.print('$ ')
  far.predicted.typed('l')
  expect(far.seen).toBeNull()
  await far.print('l')
  return far
}

describe('guesses on a terminal', () => {
  it('show what is typed, corrected and moved over, until it is echoed', async () => {
    const far = await trusted()
    far.predicted.typed('s')
    far.predicted.typed('x')
    expect(far.seen).toBe('$ lsx|')
    far.predicted.typed('\x7f')
    far.predicted.typed('\x1b[D')
    expect(far.seen).toBe('$ l|s')
    for (const echo of ['s', 'x', '\b \b', '\b']) await far.print(echo)
    expect(far.seen).toBeNull()
  })

  it('are not shown where the way is short', async () => {
    const far = await trusted()
    far.predicted.typed('s')
    expect(far.seen).toBe('$ ls|')
    far.predicted.took(5)
    expect(far.seen).toBeNull()
  })

  it('are not shown on the next connection until its way is known to be long', async () => {
    const far = await trusted()
    far.predicted.lost()
    far.predicted.typed('s')
    await far.print('s')
    far.predicted.typed('x')
    expect(far.seen).toBeNull()
    for (let count = 0; count < 3; count++) far.predicted.took(LATE)
    expect(far.seen).toBe('$ lsx|')
  })

  it('never show a password, typed before or after its prompt', async () => {
    const far = await trusted()
    far.predicted.typed('\r')
    for (const letter of 'hunter2') {
      far.predicted.typed(letter)
      expect(far.seen).toBeNull()
    }
    far.predicted.taken()
    await far.print('\r\nPassword: ')
    for (const letter of 'hunter2') {
      far.predicted.typed(letter)
      far.predicted.taken()
      expect(far.seen).toBeNull()
      far.wait(GRACE_S)
    }
  })

  it('go when what was typed does not come back', async () => {
    const far = await trusted()
    far.predicted.typed('s')
    far.predicted.taken()
    expect(far.seen).toBe('$ ls|')
    far.wait(GRACE_S)
    expect(far.seen).toBeNull()
  })

  it.each([
    ['a full screen', '\x1b[?1049h'],
    ['no cursor', '\x1b[?25l'],
    ['inserting', '\x1b[4h'],
    ['origin', '\x1b[?6h'],
  ])('are not made in %s', async (_, mode) => {
    const far = await trusted()
    await far.print(mode)
    for (const letter of 'abc') {
      far.predicted.typed(letter)
      expect(far.seen).toBeNull()
      await far.print(letter)
    }
  })

  it('are made again when the cursor is back', async () => {
    const far = await trusted()
    await far.print('\x1b[?25l')
    await far.print('\x1b[?25h')
    far.predicted.typed('a')
    await far.print('a')
    far.predicted.typed('b')
    expect(far.seen).toBe('$ lab|')
  })

  it('are withheld for secrets, and after a reset', async () => {
    const far = await trusted()
    far.predicted.typed('s')
    far.predicted.withhold(true)
    expect(far.seen).toBeNull()
    far.predicted.typed('x')
    far.predicted.withhold(false)
    expect(far.seen).toBeNull()
    const other = await trusted()
    other.predicted.typed('s')
    other.predicted.reset()
    expect(other.seen).toBeNull()
  })

  it('leave beside wide characters what they cannot move', async () => {
    const far = await trusted()
    await far.print('漢\b\b')
    far.predicted.typed('a')
    await far.print('a')
    far.predicted.typed('b')
    expect(far.seen).toBeNull()
  })
})
