// Typed input on its way to the session, and the turn it needs.
//
// Without the turn, the first key requests it. If the turn is granted at once, the key is sent; if not, a hint
// names the holder and what is typed meanwhile is dropped: keys that arrive minutes later, at another prompt,
// would do harm.

import type { SessionHandle } from '../../hold/api'
import { isReport } from '../terminal/keys'
import { sanitize } from '../text/sanitize'

type Way = Pick<SessionHandle, 'info' | 'turn' | 'observing' | 'link' | 'input' | 'requestTurn'>

const HELD_MAX_BYTES = 1024 // typed before the answer to the request is here: one key, or a short word

export class TypedInput {
  private asking = false
  private held: Uint8Array[] = []

  constructor(
    private readonly way: Way,
    private readonly hint: (text: string) => void,
    private readonly failed: (error: unknown) => void,
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
      this.hint(refusal)
      return
    }
    // While it is asked for, all of it is held: the turn event may arrive before the answer, and what is typed
    // then must not overtake what was typed first.
    if (this.asking) this.ask(data)
    else if (!turn || turn.yours || !turn.turn.holder) this.way.input(data)
    else if (turn.waiting) this.hint(this.waitingText())
    else this.ask(data)
  }

  /** The host refused an input because somebody else had the turn by then. */
  refused(): void {
    if (!this.way.turn.value?.waiting) this.ask(null)
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
    if (data && size + data.length <= HELD_MAX_BYTES) this.held.push(data)
    if (this.asking) return
    this.asking = true
    this.way
      .requestTurn()
      .then((turn) => {
        const held = this.held
        if (turn.yours) for (const one of held) this.way.input(one)
        else this.hint(this.waitingText(turn.turn.holder_name))
      })
      .catch(this.failed)
      .finally(() => {
        this.asking = false
        this.held = []
      })
  }

  private waitingText(holder = this.way.turn.value?.turn.holder_name ?? ''): string {
    return `${sanitize(holder, 64)} holds the turn. You are in the queue; your keys are not sent until you have it.`
  }
}
