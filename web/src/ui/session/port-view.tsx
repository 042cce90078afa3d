// A port that a program of the session listens on: its page in a frame, if the relay offers a separate origin for that;
// otherwise the command that forwards it to a computer.

import { useEffect, useMemo, useRef } from 'preact/hooks'
import { signal, useSignal } from '@preact/signals'
import type { Machine } from '../../hold/api'
import { PortPage } from '../../hold/port-page'
import { copy } from '../parts/copy'
import { Dialog } from '../parts/dialog'
import { Icon } from '../parts/icon'
import { keep, recall } from '../parts/local'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

/** What is looked at now. */
export const viewed = signal<{ controller: SessionController; port: number } | null>(null)

const LAST = 'hold view' // which port was looked at last
// Its own origin, and no way out of the frame: it cannot take the app's place.
const SANDBOX = 'allow-scripts allow-same-origin allow-forms allow-modals allow-downloads'

export function PortView({ controller, machine }: { controller: SessionController; machine: Machine }) {
  const at = viewed.value
  if (!at || at.controller !== controller) return null
  return <Looked key={at.port} controller={controller} machine={machine} port={at.port} />
}

function Looked({
  controller,
  machine,
  port,
}: {
  controller: SessionController
  machine: Machine
  port: number
}) {
  const origin = useSignal<string | null>(null)
  const close = (): void => {
    viewed.value = null
  }
  useEffect(() => {
    void viewOrigin().then((found) => (origin.value = found))
  }, [])
  if (origin.value === null) return null
  if (origin.value === '')
    return <Command controller={controller} machine={machine} port={port} onClose={close} />
  return <Framed controller={controller} port={port} origin={origin.value} onClose={close} />
}

/** Where this relay shows pages that are not its own; '': nowhere. */
async function viewOrigin(): Promise<string> {
  if (!isSecureContext || !('serviceWorker' in navigator)) return ''
  try {
    const answer = await fetch('/view.json', { cache: 'no-store' })
    const { port } = (await answer.json()) as { port: number }
    return port > 0 ? `${location.protocol}//${location.hostname}:${port}` : ''
  } catch {
    return ''
  }
}

// -- in a frame ------------------------------------------------------------------------------------

function Framed(props: { controller: SessionController; port: number; origin: string; onClose: () => void }) {
  const { controller, port, origin, onClose } = props
  const frame = useRef<HTMLIFrameElement>(null)
  const word = useSignal('')
  const round = useSignal(0)
  const kept = useMemo(() => {
    const { machine, session, info } = controller.handle
    return begin(`${machine} ${info.peek()?.id ?? session} ${port}`)
  }, [round.value])
  useEffect(() => {
    const page = new PortPage(() => controller.handle.ports(), port, origin)
    page.onReplaced = onClose
    const onMessage = (event: MessageEvent<{ t?: string; message?: string }>): void => {
      if (event.source !== frame.current?.contentWindow || event.origin !== origin) return
      if (event.data.t === 'failed') word.value = event.data.message ?? ''
      if (event.data.t !== 'ready') return
      const { port1, port2 } = new MessageChannel()
      page.serve(port1)
      frame.current.contentWindow?.postMessage({ t: 'app', path: '/' }, origin, [port2])
    }
    addEventListener('message', onMessage)
    return () => {
      removeEventListener('message', onMessage)
      page.close()
    }
  }, [round.value])
  return (
    <section class="port-view" data-testid="port-view" aria-label={`Port ${port}`}>
      <header class="port-view-head row">
        <strong class="mono">:{port}</strong>
        <span class="faint">of {sanitize(controller.handle.info.value?.name ?? '', 60)}</span>
        <span class="grow" />
        <button class="button small" onClick={() => round.value++}>
          Reload
        </button>
        <button
          class="icon-button"
          aria-label="Close the view"
          data-testid="port-view-close"
          onClick={onClose}
        >
          <Icon name="close" />
        </button>
      </header>
      {word.value && <p class="no-rows">{sanitize(word.value)}</p>}
      <iframe
        key={round.value}
        ref={frame}
        title={`Port ${port} of the session`}
        sandbox={SANDBOX}
        src={`${origin}/__hold/shell.html#${kept}`}
      />
    </section>
  )
}

/** Whether what is kept on the other origin is of this very port. Kept here, where its pages cannot change it. */
function begin(target: string): 'keep' | 'clear' {
  const same = recall(LAST) === target
  keep(LAST, target)
  return same ? 'keep' : 'clear'
}

// -- as a command ----------------------------------------------------------------------------------

/** What to type on a computer that has joined the machine. */
function forwardCommand(machine: Machine, session: string, port: number): string {
  return `hold forward ${word(machine.hostName || machine.name)}/${word(session)} ${port}`
}

function word(text: string): string {
  return /^[\w@%+=:,.-]+$/.test(text) ? text : `'${text.replace(/'/g, `'\\''`)}'`
}

function Command(props: {
  controller: SessionController
  machine: Machine
  port: number
  onClose: () => void
}) {
  const { controller, machine, port, onClose } = props
  const command = forwardCommand(
    machine,
    controller.handle.info.value?.name ?? controller.handle.session,
    port,
  )
  return (
    <Dialog title={`Port ${port}`} onClose={onClose} testid="port-command">
      <div class="stack">
        <p>
          This relay cannot show ports: that needs <code>hold relay --view-port</code> and a certificate that
          browsers trust. On a computer that has joined this machine, with the name the machine has there:
        </p>
        <div class="inline-form">
          <input
            class="mono grow"
            readOnly
            aria-label="The command"
            data-testid="port-command-text"
            value={command}
            onFocus={(event) => event.currentTarget.select()}
          />
          <button
            class="button primary"
            onClick={() => void copy(command, 'Command copied', ': copy it by hand')}
          >
            Copy
          </button>
        </div>
      </div>
    </Dialog>
  )
}
