// The colours of the style sheet: readable in both themes, and status apart from identity.

import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { DARK, LIGHT } from '../../src/ui/terminal/palette'

const STYLE = new URL('../../src/ui/style/', import.meta.url)
const TEXT = readFileSync(new URL('tokens.css', STYLE), 'utf8')
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

const APART = 0.09 // in OKLab, some four times what is just noticed
const ACTORS_APART = 0.05

test.each([0, 1])('who it is never looks like what is so, nor like another (theme %i)', (theme) => {
  const colour = (name: string): number[] => oklab(TOKENS.get(name)![theme]!)
  const near = HUES.flatMap((hue, at) => [
    ...STATUS.filter((name) => distance(colour(`id-${hue}`), colour(name)) < APART).map((name) => [
      hue,
      name,
    ]),
    ...HUES.slice(at + 1)
      .filter((other) => distance(colour(`id-${hue}`), colour(`id-${other}`)) < ACTORS_APART)
      .map((other) => [hue, other]),
  ])
  expect(near).toEqual([])
})

const COLOUR = /#[0-9a-f]{3,8}\b|\b(?:rgb|hsl)a?\(/gi

test('every colour of the style sheets is a token', () => {
  const found = readdirSync(STYLE)
    .filter((name) => name !== 'tokens.css')
    .flatMap((name) => readFileSync(new URL(name, STYLE), 'utf8').match(COLOUR) ?? [])
  expect(found).toEqual(['#fff']) // behind a page of somebody else, which brings its own colours
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

function linear(colour: string): number[] {
  return [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
}

function luminance(colour: string): number {
  const [r, g, b] = linear(colour)
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!
}

function oklab(colour: string): number[] {
  const [r, g, b] = linear(colour) as [number, number, number]
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ]
}

function distance(one: number[], other: number[]): number {
  return Math.hypot(...one.map((part, at) => part - other[at]!))
}
