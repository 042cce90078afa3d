// The terminal of the session on the page: the screen, the lens on it, and output into it.

import { useEffect, useRef } from 'preact/hooks'
import { effect, useSignalEffect } from '@preact/signals'
import type { Size } from '../../hold/api'
import { ToastPlace } from '../parts/toast'
import { narrow, sideways, touch } from '../parts/viewport'
import { screenReader } from '../parts/screen-reader'
import { theme } from '../parts/theme'
import { OutputFeed } from '../terminal/output-feed'
import { PredictedTyping, overlayOn } from '../terminal/predicted-typing'
import { LensView } from '../terminal/lens-view'
import { Screen } from '../terminal/screen'
import { TouchSelection } from '../terminal/touch-selection'
import type { Point } from '../terminal/lens-geometry'
import { CatchUpCard } from './catch-up-card'
import { ReceiptCard } from './receipt-card'
import { Rail } from './rail'
import type { Pointed, SessionController } from './session-controller'
import { LatestButton, PrintedBy } from './terminal-bars'

declare global {
  interface Window {
    __hold?: { terminal: Screen['term']; backlog: () => number }
  }
}

export function TerminalView({ controller }: { controller: SessionController }) {
  const pane = useRef<HTMLDivElement>(null)
  const stage = useRef<HTMLDivElement>(null)
  const rail = useRef<HTMLDivElement>(null)
  const beside = useRef<HTMLDivElement>(null)

  useEffect(() => mount(controller, pane.current!, stage.current!), [controller])
  useEffect(() => withRail(controller, rail.current!, beside.current!), [controller])
  useSignalEffect(() => controller.screen?.theme(theme.value))
  useSignalEffect(() => controller.screen?.readable(screenReader.value))
  // The size belongs to the session; this terminal only follows it.
  useSignalEffect(() => {
    const size = controller.handle.operators.value?.size ?? controller.handle.info.value?.size
    if (size && controller.ready.value) resize(controller, size)
  })
  return (
    <div class="pane-box">
      <div
        ref={pane}
        class="pane"
        data-testid="terminal"
        role="region"
        aria-label="Terminal. Control, Shift and Down leave it."
      >
        <div ref={stage} class="stage" />
      </div>
      {/* The timeline says the same in words. */}
      <div ref={rail} class="rail" data-testid="rail" aria-hidden="true" />
      <div ref={beside} class="rail-notes" data-testid="rail-notes" aria-hidden="true" />
      <PrintedBy controller={controller} />
      <div class={`overlays ${controller.ready.value && controller.lens?.cursorLow.value ? 'at-top' : ''}`}>
        {!(narrow.value && controller.panel.value) && <ToastPlace />}
        <CatchUpCard controller={controller} />
        <ReceiptCard controller={controller} />
      </div>
      <LatestButton controller={controller} />
    </div>
  )
}

function resize(controller: SessionController, size: Size): void {
  const { cols, rows } = controller.screen?.term ?? size
  if (cols !== size.cols || rows !== size.rows) controller.predicted?.reset()
  controller.screen?.size(size)
  controller.lens?.fit()
}

function mount(controller: SessionController, pane: HTMLElement, stage: HTMLElement): () => void {
  const { handle } = controller
  const first = handle.operators.value?.size ?? handle.info.value?.size ?? { cols: 80, rows: 24 }
  const screen = new Screen(stage, first, theme.value, 13, {
    typed: (text) => controller.typed(text),
    binary: (text) => controller.binary(text),
    answers: () => handle.answers.value,
    holds: () => handle.turn.value?.yours ?? false,
    moved: () => controller.lens?.settle(),
    covered: (fullScreen) => (controller.fullScreen.value = fullScreen),
    key: (event) => appKey(controller, event),
  })
  screen.open()
  const selection = new TouchSelection(screen, stage)
  const lens = new LensView(
    pane,
    stage,
    screen,
    () => !narrow.value && !sideways.value,
    () => dockHeight(pane),
    {
      tap: (at) => tap(controller, at),
      press: (at) => selection.press(at),
      grab: (at) => selection.grab(at),
      drag: (at) => selection.drag(at),
    },
  )
  controller.screen = screen
  controller.lens = lens
  controller.selection = selection
  lens.fit()
  const predicted = new PredictedTyping(screen.term, overlayOn(screen.term))
  controller.predicted = predicted
  const unwatch = watch(controller, predicted)
  const unview = watchView(controller, screen, lens, selection)
  const feed = new OutputFeed(
    screen,
    () => handle.resync(),
    () => {
      controller.ready.value = true
      predicted.drawn()
      lens.settle()
      controller.rail?.moved()
    },
  )
  const stop = handle.onOutput((bytes, kind, size, more) => {
    controller.printed()
    if (kind === 'live') return feed.live(bytes)
    return feed.resync(bytes, () => {
      predicted.reset()
      if (!more.keepScrollback) screen.term.reset()
      resize(controller, size)
    })
  })
  const paste = (event: ClipboardEvent): void => {
    event.preventDefault()
    event.stopPropagation()
    controller.paste(event.clipboardData?.getData('text/plain') ?? '')
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
    unview()
    selection.close()
    predicted.dispose()
    screen.dispose()
    controller.predicted = null
    controller.screen = null
    controller.lens = null
    controller.selection = null
    delete window.__hold
  }
}

/** What the guesses must know of the session: how far it is, what was taken, when they must not be shown. */
function watch({ handle }: SessionController, predicted: PredictedTyping): () => void {
  const undo = [
    handle.onRoundTrip((ms) => predicted.took(ms)),
    handle.inputPending.subscribe((bytes) => bytes === 0 && predicted.taken()),
    handle.link.subscribe((link) => link.at !== 'online' && predicted.lost()),
    effect(() =>
      predicted.withhold(handle.info.value?.state === 'secret' || handle.turn.value?.turn.blind === true),
    ),
  ]
  return () => undo.forEach((each) => each())
}

/** What the page around the terminal shows of it: what is selected, and how far from the end the view is. */
function watchView(
  controller: SessionController,
  screen: Screen,
  lens: LensView,
  selection: TouchSelection,
): () => void {
  const { term } = screen
  let printed = 0 // lines since the view left the end
  const look = (): void => {
    const { viewportY, baseY } = term.buffer.active
    const away = viewportY < baseY || lens.away.value
    if (!away) printed = 0
    controller.unread.value = away ? printed : null
  }
  const undo = [
    term.onLineFeed(() => void (printed += 1)),
    term.onRender(look),
    term.onWriteParsed(look), // what is printed outside the view is not drawn
    term.onSelectionChange(() => {
      controller.selected.value = selection.active ? term.getSelection().trimEnd() : ''
      controller.pointed.value = pointed(controller, screen, lens)
    }),
  ]
  const unlens = lens.away.subscribe(look)
  return () => {
    unlens()
    undo.forEach((each) => each.dispose())
  }
}

/** Whose command printed what is selected; the first line of it counts. */
function pointed(controller: SessionController, screen: Screen, lens: LensView): Pointed | null {
  const { term } = screen
  const range = term.getSelectionPosition()
  const command = range && term.hasSelection() ? controller.rail?.commandAt(range.start.y) : null
  if (!range || command == null) return null
  const cell = screen.cursor()
  const { x, y } = lens.place.peek()
  const row = range.end.y - term.buffer.active.viewportY
  return { command, at: { x: range.end.x * cell.width + x, y: (row + 1) * cell.height + y } }
}

/** Its own effect: the terminal is there by then. */
function withRail(controller: SessionController, bars: HTMLElement, notes: HTMLElement): () => void {
  const { screen, lens } = controller
  if (!screen || !lens) return () => undefined
  const rail = new Rail(controller, screen, lens, bars, notes)
  controller.rail = rail
  const resized = screen.term.onResize(() => rail.moved())
  return () => {
    resized.dispose()
    rail.close()
    controller.rail = null
  }
}

/** A finger on the terminal: ends a selection, or opens a link, or asks for the keyboard. */
function tap(controller: SessionController, at: Point): void {
  const { screen, selection } = controller
  if (selection?.active) return selection.clear()
  const link = screen?.linkAt(at.x, at.y) ?? ''
  controller.link.value = link
  if (!link) screen?.term.focus()
}

/** What the dock takes from the pane while it is open. */
function dockHeight(pane: HTMLElement): number {
  return pane.closest('.pane-place')?.querySelector<HTMLElement>('.dock')?.offsetHeight ?? 0
}

/** Keys the app keeps for itself: all with Control and Shift, which no terminal can send. */
function appKey(controller: SessionController, event: KeyboardEvent): boolean {
  if (!event.ctrlKey || !event.shiftKey || event.type !== 'keydown') return true
  const key = event.key.toLowerCase()
  if (key === 'c') {
    const selected = controller.screen?.term.getSelection()
    if (selected) void navigator.clipboard?.writeText(selected)
  } else if (key === 'f') controller.finding.value = true
  else if (key === 'enter' || key === 'arrowup')
    document.querySelector<HTMLElement>('.turn-bar button')?.focus()
  else if (key === 'arrowdown') document.querySelector<HTMLElement>('.foot button')?.focus()
  else return key !== 'v' // the browser makes a paste event of that one
  event.preventDefault()
  return false
}
