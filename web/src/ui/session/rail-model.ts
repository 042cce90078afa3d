// Which lines of the terminal belong to which command: the host says it of its own lines (`blame`), and the lines here are found
// among them by their text. Pure.

import type { BlameLine } from '../../hold/api'

/** Lines of one command, one after the other, with its prompt. */
export interface Block {
  readonly command: number
  readonly actor: string // who set it off, by name
  readonly first: number // index of a line, from the top of the scrollback
  readonly last: number
}

const LOOKED_MAX = 300 // lines that are compared, from the end: text enough to know where one is
const SHIFT_MAX = 200 // lines by which the end here may be another one than there
const ALIKE = 0.6 // of the lines with text that must be the same: a program paints over some

/** What is added to the host's line number to get the index here; null when the two are not alike. */
export function shiftOf(
  lines: readonly BlameLine[],
  count: number,
  textAt: (index: number) => string,
): number | null {
  const worded = lines.slice(-LOOKED_MAX).flatMap(({ number, text }) => {
    const trimmed = text.trimEnd()
    return trimmed ? [{ number, text: trimmed }] : []
  })
  const last = worded.at(-1)
  if (!last) return null
  let end = count - 1
  while (end > 0 && textAt(end).trimEnd() === '') end -= 1
  const known = new Map<number, string>()
  const here = (index: number): string => {
    let text = known.get(index)
    if (text === undefined) known.set(index, (text = textAt(index).trimEnd()))
    return text
  }
  const alike = (shift: number): number => {
    const within = worded.filter(({ number }) => number + shift >= 0 && number + shift < count)
    if (within.length === 0) return 0
    const same = within.filter(({ number, text }) => here(number + shift) === text).length
    return within.length < Math.min(worded.length, 3) ? 0 : same / within.length
  }
  const expected = end - last.number
  let best = { shift: expected, alike: alike(expected) }
  for (let away = 1; away <= SHIFT_MAX && best.alike < 1; away += 1)
    for (const shift of [expected - away, expected + away]) {
      const found = alike(shift)
      if (found > best.alike) best = { shift, alike: found }
    }
  return best.alike >= ALIKE ? best.shift : null
}

export function blocksOf(lines: readonly BlameLine[], shift: number): Block[] {
  const blocks: Block[] = []
  for (const { number, command, actor } of lines) {
    const at = number + shift
    if (command === null || at < 0) continue
    const before = blocks.at(-1)
    if (before?.command === command && before.last === at - 1)
      blocks[blocks.length - 1] = { ...before, last: at }
    else blocks.push({ command, actor, first: at, last: at })
  }
  return blocks
}
