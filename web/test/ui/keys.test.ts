import { expect, test } from 'vitest'
import { isPlain, isReport, keyText, modified, NO_MODIFIERS } from '../../src/ui/terminal/keys'

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

test('mouse and focus reports are distinguished from typed keys', () => {
  expect(['\x1b[I', '\x1b[O', '\x1b[<0;10;20M', '\x1b[<0;1;1m\x1b[<35;2;1M'].every(isReport)).toBe(true)
  expect(['a', '\x1b', '\x1b[A', '\x1b[Ix', '\x1b[200~\x1b[201~'].some(isReport)).toBe(false)
})

test('only a plain character goes the short way', () => {
  const pressed = (key: string, more: object = {}, state = '') =>
    isPlain({
      key,
      isComposing: false,
      ctrlKey: false,
      altKey: false,
      metaKey: false,
      getModifierState: (name: string) => name === state,
      ...more,
    })
  expect(['a', 'Z', ' ', '~', '#'].map((key) => pressed(key))).toEqual([true, true, true, true, true])
  for (const key of ['Enter', 'Dead', 'Process', 'Unidentified', 'é', '漢', '\x7f', '']) {
    expect(pressed(key), key).toBe(false)
  }
  for (const flag of ['ctrlKey', 'altKey', 'metaKey', 'isComposing']) {
    expect(pressed('a', { [flag]: true }), flag).toBe(false)
  }
  for (const state of ['CapsLock', 'AltGraph']) expect(pressed('a', {}, state), state).toBe(false)
})
