// One machine and its sessions.

import { useSignal } from '@preact/signals'
import type { Machine, SessionCard } from '../../hold/api'
import { useHold } from '../context'
import { LinkState } from '../parts/labels'
import { Dialog } from '../parts/dialog'
import { Icon } from '../parts/icon'
import { InlineCode } from '../parts/inline-code'
import { now } from '../parts/clock'
import { toast, toastError } from '../parts/toast'
import { go } from '../route'
import { age } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { reachLine, rightsLine } from '../text/rights'
import { unreachedText } from '../text/unreached'
import { SessionRow } from './session-row'

const SOON_S = 3 * 86400 // from then on the end of a grant is worth a word

interface Props {
  readonly machine: Machine
  readonly cards: readonly SessionCard[]
  readonly filtered: boolean
}

export function MachineSection({ machine, cards, filtered }: Props) {
  const about = useSignal(false)
  const starting = useSignal(false)
  const left = machine.until - now.value
  const mayStart = machine.rights.includes('input') && machine.reach.every((step) => step.startsWith('host:'))
  return (
    <section class="machine" data-testid="machine" data-machine={machine.name} data-state={machine.link}>
      <header class="machine-head row">
        <h2>{sanitize(machine.name, 64)}</h2>
        <LinkState state={machine.link} why={machine.why} />
        {machine.until > 0 && left < SOON_S && !machine.trouble && (
          <span class="chip tone-attention">
            {left > 0 ? `access ends in ${age(left)}` : 'access has ended'}
          </span>
        )}
        <span class="grow" />
        {mayStart && (
          <button class="button small" onClick={() => (starting.value = true)}>
            <Icon name="plus" /> New session
          </button>
        )}
        <button class="icon-button" aria-label={`About ${machine.name}`} onClick={() => (about.value = true)}>
          <Icon name="dots" />
        </button>
      </header>
      {machine.trouble ? (
        <p class="machine-why tone-danger" role="alert">
          <strong>{sanitize(machine.trouble.message)}</strong> {sanitize(machine.trouble.hint)}
        </p>
      ) : (
        machine.link === 'offline' && <Unreachable machine={machine} known={cards.length > 0} />
      )}
      {cards.length > 0 ? (
        <div class="rows">
          {cards.map((card) => (
            <SessionRow key={card.info.id} card={card} machine={machine} />
          ))}
        </div>
      ) : (
        !machine.trouble && <p class="no-rows">{nothingHere(filtered, machine)}</p>
      )}
      {about.value && <AboutMachine machine={machine} onClose={() => (about.value = false)} />}
      {starting.value && <StartSession machine={machine} onClose={() => (starting.value = false)} />}
    </section>
  )
}

function Unreachable({ machine, known }: { machine: Machine; known: boolean }) {
  const { title, means, todo } = unreachedText(machine.unreached ?? 'silent', sanitize(machine.name, 64))
  return (
    <p class="machine-why" data-testid="machine-why" data-code={machine.unreached}>
      <strong>{title}.</strong> <InlineCode text={`${means} ${todo}`} />
      {known && ' This is what was last known.'}
    </p>
  )
}

function nothingHere(filtered: boolean, machine: Machine) {
  if (filtered) return 'No sessions match.'
  if (machine.link !== 'online') return 'Its sessions are listed when it answers.'
  return (
    <>
      No sessions are running. On the machine: <code>hold run make test</code>
    </>
  )
}

function AboutMachine({ machine, onClose }: { machine: Machine; onClose: () => void }) {
  const hold = useHold()
  const name = useSignal(machine.name)
  const sure = useSignal(false)
  const rename = async (event: Event): Promise<void> => {
    event.preventDefault()
    try {
      await hold.rename(machine.key, name.value.trim())
      onClose()
    } catch (error) {
      toastError(error)
    }
  }
  const forget = async (): Promise<void> => {
    if (!sure.value) {
      sure.value = true
      return
    }
    await hold.forget(machine.key)
    toast(`Removed ${machine.name} from this device`)
    onClose()
  }
  return (
    <Dialog title={sanitize(machine.name, 64)} onClose={onClose}>
      <dl class="facts">
        <dt>host name</dt>
        <dd>{sanitize(machine.hostName) || 'not known yet'}</dd>
        <dt>your name there</dt>
        <dd>{sanitize(machine.actor)}</dd>
        <dt>your access</dt>
        <dd>
          {rightsLine(machine.rights)}; {reachLine(machine.reach.join('/'))}
        </dd>
        <dt>expires</dt>
        <dd>{machine.until > 0 ? new Date(machine.until * 1000).toLocaleString() : 'never'}</dd>
        <dt>relay</dt>
        <dd class="mono">{machine.relays.map((relay) => sanitize(relay.split('#')[0]!)).join(', ')}</dd>
        <dt>host key</dt>
        <dd class="mono wrap">{machine.key}</dd>
      </dl>
      <form class="inline-form" onSubmit={rename}>
        <label class="field grow">
          <span>Name on this device</span>
          <input value={name.value} maxLength={64} onInput={(e) => (name.value = e.currentTarget.value)} />
        </label>
        <button class="button" disabled={!name.value.trim() || name.value.trim() === machine.name}>
          Rename
        </button>
      </form>
      <div class="dialog-foot row">
        <button class="button danger" onClick={forget}>
          {sure.value ? 'Yes, forget it' : 'Forget this machine'}
        </button>
        <span class="faint">
          This device gives up its access and needs a new invite to come back. Nothing changes on the machine.
        </span>
      </div>
    </Dialog>
  )
}

function StartSession({ machine, onClose }: { machine: Machine; onClose: () => void }) {
  const hold = useHold()
  const name = useSignal('')
  const command = useSignal('')
  const busy = useSignal(false)
  const start = async (event: Event): Promise<void> => {
    event.preventDefault()
    busy.value = true
    try {
      const line = command.value.trim()
      // A line as people write it, with pipes and quotes: the shell reads it, not this page.
      const argv = line ? ['sh', '-c', line] : []
      const info = await hold.run(machine.key, { argv, name: name.value.trim() })
      go({ page: 'session', machine: machine.name, session: info.name })
    } catch (error) {
      toastError(error)
      busy.value = false
    }
  }
  return (
    <Dialog title={`New session on ${sanitize(machine.name, 64)}`} onClose={onClose}>
      <form class="stack" onSubmit={start}>
        <label class="field">
          <span>Command (empty for a shell)</span>
          <input
            class="mono"
            value={command.value}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(e) => (command.value = e.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>Name (optional)</span>
          <input
            value={name.value}
            maxLength={64}
            pattern="[A-Za-z0-9][A-Za-z0-9._\-]*"
            onInput={(e) => (name.value = e.currentTarget.value)}
          />
        </label>
        <div class="dialog-foot end row">
          <button class="button primary" disabled={busy.value}>
            Start
          </button>
        </div>
      </form>
    </Dialog>
  )
}
