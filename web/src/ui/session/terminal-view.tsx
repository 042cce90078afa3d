// The terminal of the session on the page: the screen, the lens on it, and output into it.

import { useEffect, useRef } from 'preact/hooks'
import { effect, useSignalEffect } from '@preact/signals'
import type { Size } from '../../hold/api'
import { ToastPlace } from '../parts/toast'
import { narrow, touch } from '../parts/viewport'
import { theme } from '../parts/theme'
import { OutputFeed } from '../terminal/feed'
import { Guesses, overlayOn } from '../terminal/guesses'
import { LensView } from '../terminal/lens-view'
import { Screen } from '../terminal/screen'
import type { Desk } from './desk'

declare global {
  interface Window {
    __hold?: { terminal: Screen['term']; backlog: () => number }
  }
}

export function TerminalView({ desk }: { desk: Desk }) {
  const pane = useRef<HTMLDivElement>(null)
  const stage = useRef<HTMLDivElement>(null)

  useEffect(() => mount(desk, pane.current!, stage.current!), [desk])
  useSignalEffect(() => desk.screen?.theme(theme.value))
  // The size belongs to the session; this terminal only follows it.
  useSignalEffect(() => {
    const size = desk.handle.operators.value?.size ?? desk.handle.info.value?.size
    if (size && desk.ready.value) resize(desk, size)
  })
  return (
    <div class="pane-box">
      <div
        ref={pane}
        class="pane"
        data-testid="terminal"
        role="region"
        aria-label="Terminal. Control, Shift and Enter leave it."
      >
        <div ref={stage} class="stage" />
      </div>
      {narrow.value && !desk.panel.value && <ToastPlace />}
    </div>
  )
}

function resize(desk: Desk, size: Size): void {
  const { cols, rows } = desk.screen?.term ?? size
  if (cols !== size.cols || rows !== size.rows) desk.guesses?.reset()
  desk.screen?.size(size)
  desk.lens?.fit()
}

function mount(desk: Desk, pane: HTMLElement, stage: HTMLElement): () => void {
  const { handle } = desk
  const first = handle.operators.value?.size ?? handle.info.value?.size ?? { cols: 80, rows: 24 }
  const screen = new Screen(stage, first, theme.value, 13, {
    typed: (text) => desk.typed(text),
    binary: (text) => desk.binary(text),
    answers: () => handle.answers.value,
    holds: () => handle.turn.value?.yours ?? false,
    moved: () => desk.lens?.settle(),
    covered: (fullScreen) => (desk.fullScreen.value = fullScreen),
    key: (event) => appKey(desk, event),
  })
  screen.open()
  const lens = new LensView(
    pane,
    stage,
    screen,
    () => !narrow.value,
    () => screen.term.focus(),
  )
  desk.screen = screen
  desk.lens = lens
  lens.fit()
  const guesses = new Guesses(screen.term, overlayOn(screen.term))
  desk.guesses = guesses
  const unwatch = watch(desk, guesses)
  const feed = new OutputFeed(
    screen,
    () => handle.resync(),
    () => {
      desk.ready.value = true
      guesses.drawn()
      lens.settle()
    },
  )
  const stop = handle.onOutput((bytes, kind, size, more) => {
    desk.printed()
    if (kind === 'live') return feed.live(bytes)
    return feed.resync(bytes, () => {
      guesses.reset()
      if (!more.keepScrollback) screen.term.reset()
      resize(desk, size)
    })
  })
  const paste = (event: ClipboardEvent): void => {
    event.preventDefault()
    event.stopPropagation()
    desk.paste(event.clipboardData?.getData('text/plain') ?? '')
  }
  pane.addEventListener('paste', paste, { capture: true })
  window.__hold = { terminal: screen.term, backlog: () => feed.backlog }
  if (!touch.value) screen.term.focus()
  return () => {
    pane.removeEventListener('paste', paste, { capture: true })
    stop()
    feed.close()
    lens.close()
    unwatch()
    guesses.dispose()
    screen.dispose()
    desk.guesses = null
    desk.screen = null
    desk.lens = null
    delete window.__hold
  }
}

/** What the guesses must know of the session: how far it is, what was taken, when they must not be shown. */
function watch({ handle }: Desk, guesses: Guesses): () => void {
  const undo = [
    handle.onRoundTrip((ms) => guesses.took(ms)),
    handle.inputPending.subscribe((bytes) => bytes === 0 && guesses.taken()),
    handle.link.subscribe((link) => link.at !== 'online' && guesses.lost()),
    effect(() =>
      guesses.withhold(handle.info.value?.state === 'secret' || handle.turn.value?.turn.blind === true),
    ),
  ]
  return () => undo.forEach((each) => each())
}

/** Keys the app keeps for itself: all with Control and Shift, which no terminal can send. */
function appKey(desk: Desk, event: KeyboardEvent): boolean {
  if (!event.ctrlKey || !event.shiftKey || event.type !== 'keydown') return true
  const key = event.key.toLowerCase()
  if (key === 'c') {
    const selected = desk.screen?.term.getSelection()
    if (selected) void navigator.clipboard?.writeText(selected)
  } else if (key === 'f') desk.finding.value = true
  else if (key === 'enter') document.querySelector<HTMLElement>('.turn-bar button')?.focus()
  else return key !== 'v' // the browser makes a paste event of that one
  event.preventDefault()
  return false
}
