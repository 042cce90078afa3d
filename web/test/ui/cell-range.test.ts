import { describe, expect, it } from 'vitest'
import { cellCount, reaching, wordAround } from '../../src/ui/terminal/cell-range'

describe('what a finger selects', () => {
  it('is the word under it: paths and addresses are whole', () => {
    const line = [...'see (src/main.rs:12) now']
    expect(wordAround(line, 8)).toEqual({ first: 5, last: 18 })
    expect(wordAround(line, 0)).toEqual({ first: 0, last: 2 })
    expect(wordAround(line, 23)).toEqual({ first: 21, last: 23 })
  })

  it('is one cell between words and after the end of the line', () => {
    expect(wordAround([...'a b'], 1)).toEqual({ first: 1, last: 1 })
    expect(wordAround(['a', '', ''], 2)).toEqual({ first: 2, last: 2 })
    expect(wordAround([], 5)).toEqual({ first: 5, last: 5 })
  })

  it('keeps the word it began with, whichever way it is dragged', () => {
    const word = { from: { x: 4, y: 10 }, to: { x: 7, y: 10 } }
    expect(reaching(word, { x: 2, y: 11 })).toEqual({ from: word.from, to: { x: 2, y: 11 } })
    expect(reaching(word, { x: 60, y: 9 })).toEqual({ from: { x: 60, y: 9 }, to: word.to })
    expect(reaching(word, { x: 5, y: 10 })).toEqual(word)
  })

  it('counts the cells of all lines', () => {
    expect(cellCount({ from: { x: 4, y: 1 }, to: { x: 7, y: 1 } }, 80)).toBe(4)
    expect(cellCount({ from: { x: 78, y: 1 }, to: { x: 1, y: 3 } }, 80)).toBe(2 + 80 + 2)
  })
})
