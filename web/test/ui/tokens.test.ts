// The colours of the style sheet: readable in both themes, and status apart from identity.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DARK, LIGHT } from '../../src/ui/terminal/palette'

const TEXT = readFileSync(new URL('../../src/ui/style/tokens.css', import.meta.url), 'utf8')
const FOUND = TEXT.matchAll(/--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)/g)
const TOKENS = new Map([...FOUND].map(([, name, light, dark]) => [name!, [light!, dark!] as const]))
const SURFACES = ['sunk', 'bg', 'surface', 'raised', 'terminal']
const STATUS = ['attention', 'danger', 'good', 'info']
const HUES = [...TOKENS.keys()].filter((name) => name.startsWith('id-')).map((name) => name.slice(3))

/** Text, what it stands on, and the least contrast: 4.5 for text, 3 for edges and fills (WCAG 1.4.3, 1.4.11). */
const PAIRS: [string, string, number][] = [
  ...cross(['text', 'soft', 'faint'], SURFACES, 4.5),
  ...cross(STATUS, ['bg', 'surface', 'raised', 'terminal'], 4.5),
  ...STATUS.map((name): [string, string, number] => [name, `${name}-soft`, 4.5]),
  ...cross(
    ['text', 'soft'],
    STATUS.map((name) => `${name}-soft`),
    4.5,
  ),
  ['on-ink', 'ink', 4.5],
  ...HUES.map((name): [string, string, number] => [`on-${name}`, `id-${name}`, 4.5]),
  ...cross(
    HUES.map((name) => `id-${name}`),
    SURFACES,
    3,
  ),
  ...cross(['focus', 'line-control'], SURFACES, 3),
]

test.each(['light', 'dark'])('every pair of colours in use can be read in the %s theme', (name) => {
  const theme = name === 'light' ? 0 : 1
  const poor = PAIRS.filter(
    ([one, two, least]) => contrast(TOKENS.get(one)![theme], TOKENS.get(two)![theme]) < least,
  )
  expect(poor).toEqual([])
  expect(HUES).toHaveLength(10)
})

test.each([
  ['light', LIGHT],
  ['dark', DARK],
])(
  'the terminal has the background of the page around it, and readable text, in the %s theme',
  (name, palette) => {
    expect(palette.background).toBe(TOKENS.get('terminal')![name === 'light' ? 0 : 1])
    const { background, black, cursorAccent, selectionBackground, ...texts } = palette
    expect([black, cursorAccent, selectionBackground].every(Boolean)).toBe(true)
    const poor = Object.entries(texts).filter(([, colour]) => contrast(colour as string, background!) < 4.5)
    expect(poor).toEqual([])
  },
)

function cross(ones: string[], twos: string[], least: number): [string, string, number][] {
  return ones.flatMap((one) => twos.map((two): [string, string, number] => [one, two, least]))
}

function contrast(one: string, two: string): number {
  const [light, dark] = [luminance(one), luminance(two)].sort((a, b) => b - a)
  return (light! + 0.05) / (dark! + 0.05)
}

function luminance(colour: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
}
