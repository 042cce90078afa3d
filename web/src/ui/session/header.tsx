// The one bar of a session: name, machine, who is there, menu.

import { useSignal } from '@preact/signals'
import type { Machine } from '../../hold/api'
import { copy } from '../parts/copy'
import { Dialog } from '../parts/dialog'
import { HoldButton } from '../parts/hold-button'
import { Avatar, LinkState } from '../parts/labels'
import { Icon } from '../parts/icon'
import { NotifyButton } from '../parts/notify-button'
import { screenReader, toggleScreenReader } from '../parts/screen-reader'
import { ThemeButton } from '../parts/top-bar'
import { narrow } from '../parts/viewport'
import { go } from '../route'
import { hueOf } from '../text/actor-colour'
import { sanitize } from '../text/sanitize'
import { may as mayWith } from '../text/rights'
import { CertificateDialog } from './certificate-dialog'
import { CheckpointsDialog } from './checkpoints-dialog'
import { useHeld } from './held-card'
import type { SessionController } from './session-controller'

interface Props {
  readonly controller: SessionController
  readonly machine: Machine
  readonly session: string
  readonly onInvite: () => void
}

export function Header({ controller, machine, session, onInvite }: Props) {
  const info = controller.handle.info.value
  const link = controller.handle.link.value.at
  const more = useSignal(false)
  const checkpoints = useSignal(false)
  const asks = (controller.handle.turn.value?.turn.queue.length ?? 0) + useHeld(controller).length
  return (
    <header class="top session-top row">
      <a
        class="icon-button"
        href="/"
        aria-label="Back to the overview"
        onClick={(event) => {
          event.preventDefault()
          go({ page: 'overview' })
        }}
      >
        <Icon name="back" />
      </a>
      <h1 class="session-name cut">
        {sanitize(info?.name ?? session, 64)} <span class="faint">on {sanitize(machine.name, 40)}</span>
      </h1>
      {info?.labels.slice(0, LABELS_SHOWN).map((label) => (
        <span key={label} class="label wide-only">
          {sanitize(label, 40)}
        </span>
      ))}
      <span class="grow" />
      <Presence controller={controller} />
      {link !== 'ended' && (
        <LinkState
          state={link === 'connecting' || link === 'offline' ? link : 'online'}
          testid="link-state"
        />
      )}
      {mayInvite(controller) && (
        <button
          class="button small wide-only"
          data-testid={narrow.value ? undefined : 'invite-open'}
          onClick={onInvite}
        >
          <Icon name="invite" /> Invite
        </button>
      )}
      <span class="wide-only">
        <NotifyButton />
      </span>
      <span class="wide-only">
        <ThemeButton />
      </span>
      <button
        class="icon-button"
        data-testid="session-menu"
        aria-label="More"
        title="More"
        onClick={() => (more.value = true)}
      >
        <Icon name="dots" />
      </button>
      <button
        class="icon-button"
        data-testid="panel-toggle"
        aria-label={`Timeline, processes, operators, inbox${asks > 0 ? `: ${asks} asking` : ''}`}
        title="Timeline, processes, operators, inbox"
        aria-expanded={controller.panel.value}
        onClick={() => (controller.panel.value = !controller.panel.value)}
      >
        <Icon name="panel" />
        {asks > 0 && <span class="badge">{asks}</span>}
      </button>
      {more.value && (
        <More
          controller={controller}
          onInvite={onInvite}
          onCheckpoints={() => (checkpoints.value = true)}
          onClose={() => (more.value = false)}
        />
      )}
      {checkpoints.value && (
        <CheckpointsDialog controller={controller} onClose={() => (checkpoints.value = false)} />
      )}
      {controller.certifying.value && (
        <CertificateDialog controller={controller} onClose={() => (controller.certifying.value = false)} />
      )}
    </header>
  )
}

const LABELS_SHOWN = 3
const PRESENT_SHOWN = 4
const PRESENT_SHOWN_NARROW = 3

/** Who is attached; a ring marks who writes. */
function Presence({ controller: { handle } }: { controller: SessionController }) {
  const present = handle.link.value.at === 'online' ? (handle.info.value?.present ?? []) : []
  const people = [...new Map(present.map((one) => [one.actor, one])).values()]
  const holder = handle.turn.value?.turn.holder
  if (people.length === 0) return null
  const names = people.map(({ name }) => sanitize(name, 64)).join(', ')
  const shown = narrow.value ? PRESENT_SHOWN_NARROW : PRESENT_SHOWN
  return (
    <span class="presence" role="img" aria-label={`Attached: ${names}`} title={`Attached: ${names}`}>
      {people.slice(0, shown).map((one) => {
        const actor = handle.actors.value.find(({ id }) => id === one.actor)
        return (
          <span key={one.actor} class={one.actor === holder ? 'is-writer' : ''}>
            <Avatar name={one.name} hue={hueOf(actor?.colour, one.actor)} kind={actor?.kind} />
          </span>
        )
      })}
      {people.length > shown && <span class="faint">+{people.length - shown}</span>}
    </span>
  )
}

function mayInvite(controller: SessionController): boolean {
  if (controller.handle.link.value.at === 'ended') return false
  return controller.handle.rights.value?.includes('grant') ?? false
}

/** Rarely needed actions, each with a short description. */
function More({
  controller,
  onInvite,
  onCheckpoints,
  onClose,
}: {
  controller: SessionController
  onInvite: () => void
  onCheckpoints: () => void
  onClose: () => void
}) {
  const { handle } = controller
  const yours = handle.turn.value?.yours ?? false
  const may = (right: string): boolean => mayWith(handle.rights.value, right)
  const blind = handle.turn.value?.turn.blind ?? false
  const then = (act: () => void) => () => {
    onClose()
    act()
  }
  const size = controller.lens?.ownGrid()
  const pinned = handle.info.value?.pinned ?? false
  const fenced = handle.link.value.at === 'fenced' // then it can be ended, and nothing else
  return (
    <Dialog
      title={sanitize(handle.info.value?.name ?? 'Session', 64)}
      onClose={onClose}
      testid="session-more"
    >
      <ul class="acts">
        {narrow.value && mayInvite(controller) && (
          <Act title="Invite" testid="invite-open" onClick={then(onInvite)}>
            a link and QR code for another device
          </Act>
        )}
        {narrow.value && <ThemeAct />}
        <Act title="Find" onClick={then(() => (controller.finding.value = true))}>
          in the scrollback{narrow.value ? '' : ' · Ctrl+Shift+F'}
        </Act>
        <Act title="Copy the screen" onClick={then(() => void copyScreen(controller))}>
          as text
        </Act>
        <Act
          title={screenReader.value ? 'Stop reading to a screen reader' : 'Read to a screen reader'}
          testid="screen-reader"
          onClick={then(toggleScreenReader)}
        >
          the lines of the terminal, and what is printed
        </Act>
        {size && may('resize') && !fenced && (
          <Act
            title={`Use my size: ${size.cols}×${size.rows}`}
            testid="use-my-size"
            disabled={!yours}
            onClick={then(() => handle.resize(size))}
          >
            {yours ? 'changes the size for everyone' : 'needs the turn: it changes the size for everyone'}
          </Act>
        )}
        {may('input') && !fenced && (
          <Act
            title={blind ? 'End the blind turn' : 'Begin a blind turn'}
            disabled={!yours}
            onClick={then(() => void controller.act(handle.setBlind(!blind)))}
          >
            nothing typed or printed is recorded until it ends
          </Act>
        )}
        {!fenced && (
          <Act title="Checkpoints…" testid="checkpoints-open" onClick={then(onCheckpoints)}>
            its processes on disk, to come back to
          </Act>
        )}
        <Act
          title="Certificate…"
          testid="certificate-open"
          onClick={then(() => (controller.certifying.value = true))}
        >
          that it is the same session, over hosts and epochs
        </Act>
        {may('input') && handle.link.value.at === 'online' && (
          <Act
            title={pinned ? 'Stop keeping it' : 'Keep it'}
            testid="session-pin"
            onClick={then(() => void controller.keep(!pinned))}
          >
            {pinned
              ? 'unused for long, it may be put to sleep or ended'
              : 'never put to sleep or ended for being unused'}
          </Act>
        )}
      </ul>
      {((may('seize') && !fenced) || may('end')) && (
        <div class="acts-danger">
          {may('seize') && may('halt') && !fenced && (
            <HoldButton
              label="Seize and halt"
              class="danger"
              onHeld={then(() => void controller.seize(true))}
            >
              <Icon name="hand" /> Seize and halt
            </HoldButton>
          )}
          {may('end') && (
            <HoldButton
              label="End the session"
              class="danger"
              testid="session-end"
              onHeld={then(() => void controller.act(handle.end()))}
            >
              End the session
            </HoldButton>
          )}
          <small class="faint">
            Press and hold. Ending the session kills everything in it, for everyone.
          </small>
        </div>
      )}
    </Dialog>
  )
}

interface ActProps {
  readonly title: string
  readonly children?: preact.ComponentChildren
  readonly onClick: () => void
  readonly disabled?: boolean
  readonly testid?: string
}

function Act({ title, children, onClick, disabled, testid }: ActProps) {
  return (
    <li>
      <button class="act" data-testid={testid} disabled={disabled} onClick={onClick}>
        <strong>{title}</strong>
        <span class="faint">{children}</span>
      </button>
    </li>
  )
}

function ThemeAct() {
  return (
    <li class="act theme-act">
      <strong>Theme</strong>
      <span class="grow" />
      <ThemeButton />
    </li>
  )
}

async function copyScreen(controller: SessionController): Promise<void> {
  const selected = controller.screen?.term.getSelection()
  const text = selected || (await controller.act(controller.handle.screen()))?.text
  if (text !== undefined) await copy(text, 'Screen copied')
}
