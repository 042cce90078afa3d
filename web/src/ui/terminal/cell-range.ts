// Which cells a finger selects. Only numbers and characters in here; the terminal does the painting.

/** A cell: its column, and its line counted from the top of the scrollback. */
export interface Cell {
  readonly x: number
  readonly y: number
}

/** From one cell to another, both included. */
export interface CellRange {
  readonly from: Cell
  readonly to: Cell
}

const SEPARATORS = new Set([...' \t()[]{}<>\'",`│|'])

/** The word around a column, given the characters of its line; one cell where there is none. */
export function wordAround(line: readonly string[], x: number): { first: number; last: number } {
  const inWord = (at: number): boolean => {
    const char = line[at]
    return char !== undefined && !SEPARATORS.has(char || ' ')
  }
  let first = x
  let last = x
  if (!inWord(x)) return { first, last }
  while (inWord(first - 1)) first -= 1
  while (inWord(last + 1)) last += 1
  return { first, last }
}

/** The range that has all of `fixed` and the cell. */
export function reaching(fixed: CellRange, cell: Cell): CellRange {
  if (before(cell, fixed.from)) return { from: cell, to: fixed.to }
  if (before(fixed.to, cell)) return { from: fixed.from, to: cell }
  return fixed
}

/** How many cells it has, line ends included. */
export function cellCount({ from, to }: CellRange, cols: number): number {
  return (to.y - from.y) * cols + to.x - from.x + 1
}

function before(one: Cell, other: Cell): boolean {
  return one.y < other.y || (one.y === other.y && one.x < other.x)
}
