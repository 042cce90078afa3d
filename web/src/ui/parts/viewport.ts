// The part of the page that an on-screen keyboard leaves free. Browsers do not shrink the page for the
// keyboard, they push it up or cover it; so the app is laid out in the visual viewport instead.

import { signal } from '@preact/signals'

const PHONE = '(max-width: 720px)'
// As in style/touch.css. A width, too: a phone held upright is wider than high while its keyboard is open.
const SIDEWAYS = '(pointer: coarse) and (min-width: 560px) and (max-height: 500px)'

/** A narrow page: one column, sheets instead of side panels. */
export const narrow = signal(false)
/** A phone on its side: height is what there is least of. */
export const sideways = signal(false)
/** The main pointer is a finger. */
export const touch = signal(false)

export function startViewport(): void {
  follow(PHONE, narrow)
  follow(SIDEWAYS, sideways)
  follow('(pointer: coarse)', touch)
  const root = document.documentElement
  const place = (): void => {
    const view = window.visualViewport
    root.style.setProperty('--app-height', `${Math.round(view?.height ?? innerHeight)}px`)
    root.style.setProperty('--app-top', `${Math.round(view?.offsetTop ?? 0)}px`)
  }
  window.visualViewport?.addEventListener('resize', place)
  window.visualViewport?.addEventListener('scroll', place)
  addEventListener('resize', place)
  place()
}

function follow(text: string, into: { value: boolean }): void {
  const query = matchMedia(text)
  into.value = query.matches
  query.addEventListener('change', () => (into.value = query.matches))
}
