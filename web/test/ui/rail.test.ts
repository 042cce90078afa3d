import { expect, test } from 'vitest'
import type { BlameLine } from '../../src/hold/api'
import { blocksOf, shiftOf } from '../../src/ui/session/rail-model'

/** Lines as a host says them: `text|command|actor`, from number `from` on. */
function said(lines: readonly string[], from = 1): BlameLine[] {
  return lines.map((line, index) => {
    const [text = '', command = '', actor = ''] = line.split('|')
    return {
      number: from + index,
      text,
      actor,
      command: command ? Number(command) : null,
      command_text: '',
      at: null,
      trigger: actor,
      originators: [],
    }
  })
}

const LINES = ['$ ls|1|maria', 'a  b|1|maria', '$ make|2|otto', 'cc|2|otto', 'ok|2|otto', '$ ']
const texts = LINES.map((line) => line.split('|')[0]!)
const at = (shown: readonly string[]) => (index: number) => shown[index] ?? ''

test('lines of one command are one block, with its prompt; what is nobody’s has none', () => {
  expect(blocksOf(said(LINES), -1)).toEqual([
    { command: 1, actor: 'maria', first: 0, last: 1 },
    { command: 2, actor: 'otto', first: 2, last: 4 },
  ])
})

test('lines are found by their text: with rows below the prompt, above the first one, and printed since', () => {
  const blank = Array<string>(20).fill('')
  expect(shiftOf(said(LINES), 26, at([...texts, ...blank]))).toBe(-1)
  const more = ['old', 'older', ...texts, 'printed', 'since']
  expect(shiftOf(said(LINES), more.length, at(more))).toBe(1)
  expect(shiftOf(said(LINES, 500), texts.length, at(texts))).toBe(-500)
})

test('a program that painted over some lines does not move the rest', () => {
  const painted = texts.with(3, 'cc: done')
  expect(shiftOf(said(LINES), painted.length, at(painted))).toBe(-1)
})

test('another text is no place for a rail', () => {
  const other = texts.map((_, index) => `something else ${index}`)
  expect(shiftOf(said(LINES), other.length, at(other))).toBeNull()
  expect(shiftOf([], 24, at([]))).toBeNull()
  expect(shiftOf(said(['', '']), 24, at([]))).toBeNull()
})

test('many alike lines are counted from the end', () => {
  const same = Array<string>(50).fill('y|3|otto')
  expect(shiftOf(said(same), 50, () => 'y')).toBe(-1)
})
