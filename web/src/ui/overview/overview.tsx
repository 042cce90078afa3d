// All machines and sessions this device knows; sessions that wait for input come first.

import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { Hold } from '../../hold/api'
import { useHold } from '../context'
import { LinkState } from '../parts/labels'
import { Icon } from '../parts/icon'
import { NotifyButton } from '../parts/notify-button'
import { Brand, ThemeButton } from '../parts/top-bar'
import { learnActors } from './known-actors'
import { MachineSection } from './machine-section'
import { NeedsYou } from './needs-you'
import { countOf, labelsOf, matches, order, type Show } from './filter'

const SHOWS: [Show, string][] = [
  ['live', 'Live'],
  ['needs', 'Waiting'],
  ['ended', 'Ended'],
]

export function Overview() {
  const hold = useHold()
  const text = useSignal('')
  const labels = useSignal<string[]>([])
  const show = useSignal<Show>('live')
  const search = useRef<HTMLInputElement>(null)
  const shown = useComputed(() =>
    order(hold.sessions.value.filter((card) => matches(card, wanted(text.value, labels.value, show.value)))),
  )
  useEffect(() => slashFocuses(search), [])
  useEffect(() => learnActors(hold), [hold])
  useEffect(() => {
    document.title = 'holdfast'
  }, [])

  const machines = hold.machines.value
  const filtered = text.value !== '' || labels.value.length > 0 || show.value !== 'live'
  return (
    <div class="page" data-testid="overview">
      <header class="top row">
        <Brand />
        {machines.length > 0 && (
          <label class="search">
            <Icon name="search" />
            <input
              ref={search}
              type="search"
              placeholder="Find a session, label or command"
              aria-label="Search sessions"
              data-testid="overview-search"
              value={text.value}
              onInput={(event) => (text.value = event.currentTarget.value)}
              onKeyDown={(event) => event.key === 'Escape' && (text.value = '')}
            />
          </label>
        )}
        <span class="grow" />
        {machines.length > 0 && <Connection machines={machines} />}
        <NotifyButton />
        <ThemeButton />
      </header>
      <main class="overview">
        <h1 class="unseen">Sessions</h1>
        <NeedsYou />
        {machines.length > 0 && <Filters hold={hold} show={show} labels={labels} />}
        {machines.map((machine) => (
          <MachineSection
            key={machine.key}
            machine={machine}
            cards={shown.value.filter((card) => card.machine === machine.key)}
            filtered={filtered}
          />
        ))}
        {hold.ready.value && machines.length === 0 && <Empty />}
      </main>
    </div>
  )
}

function wanted(text: string, labels: string[], show: Show) {
  return { text, labels, show }
}

/** "online" is every machine that was joined, not one of them. */
function Connection({ machines }: { machines: Hold['machines']['value'] }) {
  const reached = machines.filter((machine) => machine.link === 'online').length
  const missing = machines.filter((machine) => machine.link !== 'online')
  const connecting = missing.length > 0 && missing.every((machine) => machine.link === 'connecting')
  const state = missing.length === 0 ? 'online' : connecting ? 'connecting' : 'offline'
  const word = reached > 0 && state !== 'online' ? `${reached} of ${machines.length} online` : state
  return (
    <LinkState state={state} word={word} why={missing.map(({ why }) => why).join('; ')} testid="link-state" />
  )
}

interface FiltersProps {
  readonly hold: Hold
  readonly show: { value: Show }
  readonly labels: { value: string[] }
}

function Filters({ hold, show, labels }: FiltersProps) {
  const cards = hold.sessions.value
  const toggle = (label: string): void => {
    const on = labels.value.includes(label)
    labels.value = on ? labels.value.filter((one) => one !== label) : [...labels.value, label]
  }
  return (
    <div class="filters row" role="group" aria-label="Filter sessions">
      {SHOWS.map(([name, word]) => (
        <button
          key={name}
          class="filter"
          aria-pressed={show.value === name}
          onClick={() => (show.value = name)}
          data-show={name}
        >
          {word}{' '}
          <span class={`count ${name === 'needs' && countOf(cards, name) > 0 ? 'tone-attention' : ''}`}>
            {countOf(cards, name)}
          </span>
        </button>
      ))}
      <span class="filter-gap" />
      {labelsOf(cards).map((label) => (
        <button
          key={label}
          class="label"
          aria-pressed={labels.value.includes(label)}
          onClick={() => toggle(label)}
        >
          {label}
        </button>
      ))}
    </div>
  )
}

function Empty() {
  return (
    <section class="empty" data-testid="overview-empty">
      <h1>No machines on this device yet</h1>
      <p>You connect to a machine with an invite link. On that machine:</p>
      <ol class="steps">
        <li>
          <span>Start the host; it prints a link and a QR code</span>
          <pre>hold up</pre>
        </li>
        <li>Open the link here, or scan the code with your phone. The link works once.</li>
        <li>
          <span>Later, to add another of your devices</span>
          <pre>hold invite --all --role admin</pre>
        </li>
      </ol>
      <p class="faint">
        The key of this device is created in this browser and never leaves it. The relay that serves this page
        cannot read what you see or type.
      </p>
    </section>
  )
}

/** `/` goes to the search field, as in most tools with a list. */
function slashFocuses(search: { current: HTMLInputElement | null }): () => void {
  const onKey = (event: KeyboardEvent): void => {
    const busy = event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement
    if (event.key !== '/' || busy || document.querySelector('dialog[open]')) return
    event.preventDefault()
    search.current?.focus()
  }
  addEventListener('keydown', onKey)
  return () => removeEventListener('keydown', onKey)
}
