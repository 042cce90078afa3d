// Typed input on its way to the session, and the turn it needs.
//
// Without the turn, the first key requests it. If the turn is granted at once, the key is sent; if not, a hint
// names the holder and what is typed meanwhile is dropped: keys that arrive minutes later, at another prompt,
// would do harm.
//
// They are dropped as whole lines. If the turn arrives in the middle of one, or a halted session runs again, the rest of
// that line would be a command of its own (`rm -rf x` of `echo rm -rf x`), so it is dropped too: until a pause, or with
// the Enter that ends it.

import type { SessionHandle } from '../../hold/api'
import { isReport } from '../terminal/keys'
import { sanitize } from '../text/sanitize'

type Way = Pick<SessionHandle, 'info' | 'turn' | 'observing' | 'link' | 'input' | 'requestTurn'>

const HELD_MAX_BYTES = 1024 // typed before the answer to the request is here: one key, or a short word
const LINE_PAUSE_MS = 1500 // longer than between two keys of one line: whoever pauses has seen that nothing appears

const ENDS_OF_LINE = new Set([0x03, 0x0a, 0x0d]) // ^C, as a newline, Enter: the next key begins a line

const DROPPED = 'This line began before it could be typed, so it was not sent. Type it again.'
const DROPPING =
  'This line began before it could be typed: it is not sent. Pause or press Enter, then type it again.'

export class TypedInput {
  private asking = false
  private held: Uint8Array[] = []
  private overflowed = false // more was typed than is held: what is held is half a line
  private lineDropped = false // keys were dropped and no Enter followed
  private droppedAt = 0

  constructor(
    private readonly way: Way,
    private readonly hint: (text: string) => void,
    private readonly failed: (error: unknown) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  text(text: string): void {
    this.bytes(new TextEncoder().encode(text), isReport(text))
  }

  /** Mouse reports of the old kind, a byte a character. */
  binary(text: string): void {
    this.bytes(
      Uint8Array.from(text, (char) => char.charCodeAt(0)),
      true,
    )
  }

  /** `report`: nobody typed it, so it neither takes nor asks for the turn. */
  bytes(data: Uint8Array, report = false): void {
    const turn = this.way.turn.value
    if (report && !turn?.yours) return
    const refusal = this.refusal()
    if (refusal) {
      if (!report) this.drop(data)
      this.hint(refusal)
      return
    }
    // While it is asked for, all of it is held: the turn event may arrive before the answer, and what is typed
    // then must not overtake what was typed first.
    if (this.asking) this.ask(data)
    else if (!turn || turn.yours || !turn.turn.holder) this.send(data, report)
    else if (turn.waiting) {
      this.drop(data)
      this.hint(this.waitingText())
    } else this.ask(data)
  }

  /** The host refused an input because somebody else had the turn by then. */
  refused(): void {
    this.lineDropped = true
    this.droppedAt = this.now()
    if (!this.way.turn.value?.waiting) this.ask(null)
  }

  /** With the turn: all but the rest of a line that was begun without it. */
  private send(data: Uint8Array, report: boolean): void {
    if (report || !this.lineDropped || this.now() - this.droppedAt >= LINE_PAUSE_MS) {
      if (!report) this.lineDropped = false
      this.way.input(data)
      return
    }
    this.drop(data)
    this.hint(this.lineDropped ? DROPPING : DROPPED)
  }

  /** An Enter ends the line that is dropped, and goes with it. */
  private drop(data: Uint8Array): void {
    this.lineDropped = !ENDS_OF_LINE.has(data.at(-1) ?? 0)
    this.droppedAt = this.now()
  }

  private refusal(): string {
    if (this.way.observing.value) return 'You can watch this session, but not type.'
    const link = this.way.link.value
    if (link.at === 'ended')
      return `The session ${link.ending?.lost ? 'was lost' : 'has ended'}: input is disabled.`
    if (link.at === 'fenced') return 'The session is fenced: input is disabled.'
    if (this.way.info.value?.state === 'halted')
      return 'The session is halted and refuses input. Resume it first.'
    return ''
  }

  private ask(data: Uint8Array | null): void {
    const size = this.held.reduce((sum, one) => sum + one.length, 0)
    if (data && !this.overflowed && size + data.length <= HELD_MAX_BYTES) this.held.push(data)
    else if (data) this.overflowed = true
    if (this.asking) return
    this.asking = true
    this.way
      .requestTurn()
      .then((turn) => {
        if (turn.yours && !this.overflowed) for (const one of this.held) this.way.input(one)
        else {
          this.dropHeld()
          this.hint(turn.yours ? DROPPING : this.waitingText(turn.turn.holder_name))
        }
      })
      .catch((error: unknown) => {
        this.dropHeld()
        this.failed(error)
      })
      .finally(() => {
        this.asking = false
        this.held = []
        this.overflowed = false
      })
  }

  private dropHeld(): void {
    for (const one of this.held) this.drop(one)
    if (this.overflowed) this.lineDropped = true
  }

  private waitingText(holder = this.way.turn.value?.turn.holder_name ?? ''): string {
    return `${sanitize(holder, 64)} holds the turn. You are in the queue; your keys are not sent until you have it.`
  }
}
