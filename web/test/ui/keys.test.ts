import { expect, test } from 'vitest'
import { isReport, keyText, modified, NO_MODIFIERS } from '../../src/ui/terminal/keys'

const CTRL = { ctrl: true, alt: false }
const ALT = { ctrl: false, alt: true }

test('arrows are sent as the program asked for', () => {
  expect(keyText('Up', NO_MODIFIERS, false)).toBe('\x1b[A')
  expect(keyText('Up', NO_MODIFIERS, true)).toBe('\x1bOA')
  expect(keyText('Left', CTRL, true)).toBe('\x1b[1;5D')
  expect(keyText('PgDn', ALT, false)).toBe('\x1b[6;3~')
})

test('Control makes the control characters of a terminal', () => {
  expect(['c', 'C', '[', ' ', '?', '_'].map((char) => modified(char, CTRL))).toEqual([
    '\x03',
    '\x03',
    '\x1b',
    '\x00',
    '\x7f',
    '\x1f',
  ])
  expect(modified('é', CTRL)).toBe('é')
})

test('Alt puts an Escape before it', () => {
  expect(modified('b', ALT)).toBe('\x1bb')
  expect(modified('c', { ctrl: true, alt: true })).toBe('\x1b\x03')
})

test('modifiers do nothing to what is longer than a character', () => {
  expect(modified('hello', CTRL)).toBe('hello')
  expect(modified('\x1b[A', CTRL)).toBe('\x1b[A')
})

test('mouse and focus reports are told from what was typed', () => {
  expect(['\x1b[I', '\x1b[O', '\x1b[<0;10;20M', '\x1b[<0;1;1m\x1b[<35;2;1M'].every(isReport)).toBe(true)
  expect(['a', '\x1b', '\x1b[A', '\x1b[Ix', '\x1b[200~\x1b[201~'].some(isReport)).toBe(false)
})
