// The side panel of a session, or the sheet from below on a phone: timeline, processes, operators, inbox.

import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../parts/icon'
import { narrow, touch } from '../parts/viewport'
import type { SessionController, Tab } from './session-controller'
import { useHeld } from './held-card'
import { Inbox } from './inbox'
import { LineageLine } from './lineage-line'
import { Operators } from './operators'
import { Processes } from './processes'
import { Timeline } from './timeline'

const TABS: [Tab, string][] = [
  ['timeline', 'Timeline'],
  ['processes', 'Processes'],
  ['operators', 'Operators'],
  ['inbox', 'Inbox'],
]

interface Props {
  readonly controller: SessionController
  readonly machine: string // by the name it has on this device
}

export function Panel({ controller, machine }: Props) {
  const box = useRef<HTMLElement>(null)
  const close = (): void => {
    controller.panel.value = false
    if (!narrow.value) controller.screen?.term.focus()
  }
  useEffect(() => {
    if (narrow.value) box.current?.querySelector<HTMLElement>('[aria-selected=true]')?.focus()
  }, [])
  const waiting = (controller.handle.turn.value?.turn.queue.length ?? 0) + useHeld(controller).length
  return (
    <>
      {narrow.value && <div class="scrim" onClick={close} />}
      <aside
        ref={box}
        class="panel"
        aria-label="About this session"
        onKeyDown={(event) => event.key === 'Escape' && close()}
      >
        <div class="tabs row">
          <div class="tab-list row grow" role="tablist" onKeyDown={(event) => arrows(event, controller)}>
            {TABS.map(([tab, word]) => (
              <button
                key={tab}
                role="tab"
                id={`tab-${tab}`}
                data-testid={`tab-${tab}`}
                aria-selected={controller.tab.value === tab}
                aria-controls="panel-body"
                tabIndex={controller.tab.value === tab ? 0 : -1}
                onClick={() => (controller.tab.value = tab)}
              >
                {word}
                {tab === 'inbox' && waiting > 0 && <span class="count tone-attention">{waiting}</span>}
              </button>
            ))}
          </div>
          <button class="icon-button small" aria-label="Close the panel" onClick={close}>
            <Icon name="close" />
          </button>
        </div>
        <div
          class="panel-body"
          id="panel-body"
          role="tabpanel"
          aria-labelledby={`tab-${controller.tab.value}`}
          tabIndex={0}
        >
          <Body controller={controller} />
        </div>
        {controller.tab.value === 'timeline' && <Foot controller={controller} machine={machine} />}
      </aside>
    </>
  )
}

function Foot({ controller, machine }: Props) {
  return (
    <div class="panel-foot">
      <LineageLine controller={controller} machine={machine} />
      {!touch.value && (
        <p>Select text in the terminal to see who printed it. Select a command here to go to it.</p>
      )}
    </div>
  )
}

function Body({ controller }: { controller: SessionController }) {
  switch (controller.tab.value) {
    case 'timeline':
      return <Timeline controller={controller} />
    case 'processes':
      return <Processes controller={controller} />
    case 'operators':
      return <Operators controller={controller} />
    case 'inbox':
      return <Inbox controller={controller} />
  }
}

function arrows(event: KeyboardEvent, controller: SessionController): void {
  const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
  if (step === 0) return
  const at = TABS.findIndex(([tab]) => tab === controller.tab.value)
  const [next] = TABS[(at + step + TABS.length) % TABS.length]!
  controller.tab.value = next
  requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus())
}
