// What belongs to the terminal's text and stands beside it: the way back to the end, the link that was tapped, the
// selection.

import { now } from '../parts/clock'
import { copy } from '../parts/copy'
import { Icon } from '../parts/icon'
import { Avatar } from '../parts/labels'
import { touch } from '../parts/viewport'
import { hueOf } from '../text/actor-colour'
import { clock, took } from '../text/durations'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

export function LatestButton({ controller }: { controller: SessionController }) {
  const unread = controller.unread.value
  if (unread === null || !controller.ready.value) return null
  return (
    <button class="button primary latest" data-testid="jump-latest" onClick={() => controller.latest()}>
      <Icon name="latest" /> {controller.fullScreen.value ? 'Back to the cursor' : 'Jump to latest'}
      {unread > 0 && <span>· {unread === 1 ? '1 new line' : `${unread} new lines`}</span>}
    </button>
  )
}

/** Beside a selection that a mouse made: whose command printed it. */
export function PrintedBy({ controller }: { controller: SessionController }) {
  const pointed = controller.pointed.value
  if (!pointed || controller.selected.value || touch.value) return null
  const command = controller.timeline.value.commands.findLast(({ number }) => number === pointed.command)
  if (!command) return null
  const actor = controller.handle.actors.value.find(({ name }) => name === command.actor)
  return (
    <section
      class="printed-by"
      aria-label="Printed by"
      data-testid="printed-by"
      style={{ '--x': `${Math.round(pointed.at.x)}px`, '--y': `${Math.round(pointed.at.y)}px` }}
    >
      <Avatar
        name={command.actor || '?'}
        hue={hueOf(actor?.colour, actor?.id || command.actor)}
        kind={actor?.kind}
      />
      <span class="cut">
        Printed by <code>{sanitize(command.text, 60)}</code>
        <br />
        <span class="faint">
          {sanitize(command.actor || 'nobody known', 40)}, {clock(command.beganAt, now.value)}
          {command.endedAt !== null && `, took ${took(command.endedAt - command.beganAt)}`}
        </span>
      </span>
      <button
        class="button"
        data-testid="printed-by-go"
        onClick={() => controller.showCommand(command.number)}
      >
        Go to it
      </button>
    </section>
  )
}

/** The address is shown before it is opened: a program chooses the text of its links. */
export function LinkBar({ controller }: { controller: SessionController }) {
  const address = controller.link.value
  if (!address) return null
  const close = (): void => {
    controller.link.value = ''
  }
  return (
    <section class="dock-bar row" aria-label="Link" data-testid="link-bar">
      <code class="grow wrap dock-address">{address}</code>
      <button class="button" onClick={() => void copy(address, 'Address copied').then(close)}>
        Copy
      </button>
      <a
        class="button primary"
        data-testid="link-open"
        href={address}
        target="_blank"
        rel="noopener noreferrer"
        onClick={close}
      >
        Open
      </a>
      <button class="icon-button" aria-label="Close" onClick={close}>
        <Icon name="close" />
      </button>
    </section>
  )
}

export function SelectionBar({ controller }: { controller: SessionController }) {
  const text = controller.selected.value
  const { selection } = controller
  if (!text || !selection) return null
  const lines = text.split('\n').length
  const stay = (event: Event): void => event.preventDefault() // the on-screen keyboard stays as it is
  return (
    <section
      class="dock-bar row"
      aria-label="Selection"
      data-testid="selection-bar"
      onPointerDown={stay}
      onMouseDown={stay}
    >
      <span class="grow faint">
        {lines > 1 ? `${lines} lines` : text.length === 1 ? '1 character' : `${text.length} characters`}
      </span>
      <button class="button" data-testid="select-lines" onClick={() => selection.wholeLines()}>
        Whole line
      </button>
      <button
        class="button primary"
        data-testid="select-copy"
        onClick={() => void copy(text, 'Copied').then((done) => done && selection.clear())}
      >
        <Icon name="copy" /> Copy
      </button>
      <button class="icon-button" aria-label="Clear the selection" onClick={() => selection.clear()}>
        <Icon name="close" />
      </button>
    </section>
  )
}
