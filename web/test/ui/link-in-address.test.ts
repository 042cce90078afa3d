// An invite link is taken out of the address, the first one and each that is opened in the same tab after it.

import { afterEach, expect, test, vi } from 'vitest'
import { onLink, takeLink } from '../../src/ui/join/link-in-address'

const ORIGIN = 'https://relay.example'

/** A tab at this address. */
function tab(address: string) {
  const target = new EventTarget()
  const place = { href: '', pathname: '', hash: '' }
  const at = (next: string): void => {
    const { href, pathname, hash } = new URL(next, ORIGIN)
    Object.assign(place, { href, pathname, hash })
  }
  at(address)
  vi.stubGlobal('location', place)
  vi.stubGlobal('history', { replaceState: (_: unknown, __: string, next: string) => at(next) })
  vi.stubGlobal('addEventListener', target.addEventListener.bind(target))
  vi.stubGlobal('removeEventListener', target.removeEventListener.bind(target))
  const go = (next: string): void => {
    at(next)
    for (const name of ['popstate', 'hashchange']) target.dispatchEvent(new Event(name))
  }
  return { place, go }
}

afterEach(() => vi.unstubAllGlobals())

test('a link is given once, and its secret is gone from the address', () => {
  const { place } = tab('/i#one.secret')
  expect(takeLink()).toBe(`${ORIGIN}/i#one.secret`)
  expect(place.href).toBe(`${ORIGIN}/i`)
  expect(takeLink()).toBeNull()
})

test('what is in the fragment of another page is no link', () => {
  const { place } = tab('/m/box/s/build#one.secret')
  expect(takeLink()).toBeNull()
  expect(place.hash).toBe('#one.secret')
})

test('a second link in the same tab is taken too, once', () => {
  const { place, go } = tab('/i#one')
  takeLink()
  const opened: string[] = []
  const stop = onLink((link) => opened.push(link))
  go('/i#two.secret')
  expect([opened, place.href]).toEqual([[`${ORIGIN}/i#two.secret`], `${ORIGIN}/i`])
  stop()
  go('/i#three')
  expect(opened.length).toBe(1)
})
