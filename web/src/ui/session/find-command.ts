// From a command to its first line in the scrollback. The host numbers its lines from the oldest it holds
// and says for each which command printed it; the terminal here has its own count. Pure but for `fetch`.

import type { BlameLine } from '../../hold/api'

type Fetch = (first: number, last: number) => Promise<{ lines: BlameLine[]; total: number }>

const PAGE_LINES = 128

interface FoundLine {
  readonly line: BlameLine
  readonly total: number
}

/** Command numbers only rise down the scrollback, so halving finds the place in a few questions. */
export async function findCommand(fetch: Fetch, command: number): Promise<FoundLine | null> {
  let { total } = await fetch(1, 1)
  let [low, high] = [1, total] // the first line of the command is within
  while (high - low >= PAGE_LINES) {
    const middle = Math.floor((low + high) / 2)
    const page = await fetch(middle, Math.min(total, middle + PAGE_LINES - 1))
    total = page.total
    const known = page.lines.find((line) => line.command !== null)
    if (known && known.command! < command) low = known.number + 1
    else if (known) high = Math.min(high, known.number)
    else low = Math.min(high, middle + page.lines.length) // no command here: only before the first one, or a hole
    if (page.lines.length === 0) break
  }
  const page = await fetch(low, Math.min(total, low + 2 * PAGE_LINES))
  const line = page.lines.find((one) => one.command === command)
  return line ? { line, total: page.total } : null
}

/** The line of this terminal: counted from the end, then the nearest with the same text. */
export function locate(
  textAt: (index: number) => string,
  count: number,
  found: FoundLine,
  near = 60,
): number {
  const expected = Math.max(0, Math.min(count - 1, count - found.total + found.line.number - 1))
  const wanted = found.line.text.trimEnd()
  for (let away = 0; away <= near; away += 1) {
    for (const index of [expected - away, expected + away]) {
      if (index >= 0 && index < count && textAt(index).trimEnd() === wanted) return index
    }
  }
  return expected
}
