// The side panel of a session, or the sheet from below on a phone: timeline, processes, operators, inbox.

import { useEffect, useRef } from 'preact/hooks'
import { Icon } from '../parts/icon'
import { narrow } from '../parts/viewport'
import type { Desk, Tab } from './desk'
import { Inbox } from './inbox'
import { Operators } from './operators'
import { Processes } from './processes'
import { Timeline } from './timeline'

const TABS: [Tab, string][] = [
  ['timeline', 'Timeline'],
  ['processes', 'Processes'],
  ['operators', 'Operators'],
  ['inbox', 'Inbox'],
]

export function Panel({ desk }: { desk: Desk }) {
  const box = useRef<HTMLElement>(null)
  const close = (): void => {
    desk.panel.value = false
    if (!narrow.value) desk.screen?.term.focus()
  }
  useEffect(() => {
    if (narrow.value) box.current?.querySelector<HTMLElement>('[aria-selected=true]')?.focus()
  }, [])
  const waiting = desk.handle.turn.value?.turn.queue.length ?? 0
  return (
    <>
      {narrow.value && <div class="scrim" onClick={close} />}
      <aside
        ref={box}
        class="panel"
        aria-label="About this session"
        onKeyDown={(event) => event.key === 'Escape' && close()}
      >
        <div class="tabs" role="tablist" onKeyDown={(event) => arrows(event, desk)}>
          {TABS.map(([tab, word]) => (
            <button
              key={tab}
              role="tab"
              id={`tab-${tab}`}
              data-testid={`tab-${tab}`}
              aria-selected={desk.tab.value === tab}
              aria-controls="panel-body"
              tabIndex={desk.tab.value === tab ? 0 : -1}
              onClick={() => (desk.tab.value = tab)}
            >
              {word}
              {tab === 'inbox' && waiting > 0 && <span class="count is-hot">{waiting}</span>}
            </button>
          ))}
          <span class="grow" />
          <button class="icon-button small" aria-label="Close the panel" onClick={close}>
            <Icon name="close" />
          </button>
        </div>
        <div
          class="panel-body"
          id="panel-body"
          role="tabpanel"
          aria-labelledby={`tab-${desk.tab.value}`}
          tabIndex={0}
        >
          <Body desk={desk} />
        </div>
      </aside>
    </>
  )
}

function Body({ desk }: { desk: Desk }) {
  switch (desk.tab.value) {
    case 'timeline':
      return <Timeline desk={desk} />
    case 'processes':
      return <Processes desk={desk} />
    case 'operators':
      return <Operators desk={desk} />
    case 'inbox':
      return <Inbox desk={desk} />
  }
}

function arrows(event: KeyboardEvent, desk: Desk): void {
  const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
  if (step === 0) return
  const at = TABS.findIndex(([tab]) => tab === desk.tab.value)
  const [next] = TABS[(at + step + TABS.length) % TABS.length]!
  desk.tab.value = next
  requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus())
}
