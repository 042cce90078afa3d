// What settles a need where it stands in the list: an answer, a secret, the turn, a resume. Each has an effect at once, in a session
// that is not open; so only what is shown here is answered, and nothing is sent when something else is asked by then.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { type Signal, useSignal } from '@preact/signals'
import type { Hold, Machine, SessionCard } from '../../hold/api'
import { useHold } from '../context'
import { Icon } from '../parts/icon'
import { toast, toastError } from '../parts/toast'
import { go, path, type Route } from '../route'
import { quickAnswers } from '../session/quick-answers'
import { runningCommand } from '../text/running'
import { sanitize } from '../text/sanitize'
import { isOver } from '../text/session-state'
import { putOff, type Need } from './needs'

interface Props {
  readonly need: Need
  readonly machine: Machine | undefined
  readonly busy: Signal<boolean>
  readonly form: Signal<boolean> // the field for an answer in words, or for a secret, is open
}

const ANSWERS_IN_ROW = 3 // more are in the form

export function NeedActs(props: Props) {
  const { need, machine } = props
  const rights = machine?.rights ?? []
  switch (need.kind) {
    case 'question':
      return rights.includes('input') ? <QuestionActs {...props} /> : <OpenNeed card={need.card} />
    case 'secret':
      return rights.includes('input') ? <SecretActs {...props} /> : <OpenNeed card={need.card} />
    case 'turn':
      return <TurnActs {...props} />
    case 'halted':
      return (
        <>
          <OpenNeed card={need.card} />
          {rights.includes('halt') && <Resume {...props} />}
        </>
      )
    case 'lost':
      return (
        <>
          {rights.includes('end') && <Acknowledge {...props} />}
          <OpenNeed card={need.card}>See what survived</OpenNeed>
        </>
      )
    default:
      return <OpenNeed card={need.card} />
  }
}

/** One at a time; a failure is said, and what was asked is then still there. */
async function settle(busy: Signal<boolean>, done: string, deed: () => Promise<void>): Promise<boolean> {
  if (busy.value) return false
  busy.value = true
  try {
    await deed()
    if (done) toast(done, 'good')
    return true
  } catch (error) {
    toastError(error)
    return false
  } finally {
    busy.value = false
  }
}

function answer(hold: Hold, { card }: Need, busy: Signal<boolean>, text: string, said: string) {
  const done = `${said} in ${sanitize(card.info.name, 64)}`
  return settle(busy, done, () => hold.answer(card.machine, card.info, text))
}

function QuestionActs({ need, busy, form }: Props) {
  const hold = useHold()
  const offered = inRow(need.card)
  return (
    <>
      {offered.map((one) => (
        <button
          key={one.testid}
          class="button"
          data-testid={`need-${one.testid}`}
          disabled={busy.value}
          onClick={() => void answer(hold, need, busy, one.text, `Answered ${one.label}`)}
        >
          {one.label}
          {one.hint && <span class="answer-hint">{one.hint}</span>}
        </button>
      ))}
      <button
        class="button"
        data-testid="need-answer"
        aria-expanded={form.value}
        onClick={() => (form.value = !form.value)}
      >
        {offered.length > 0 ? 'Type…' : 'Answer…'}
      </button>
    </>
  )
}

/** Only what the question itself offers: a menu over it is known a moment later, and would move what is pressed by then. */
function inRow({ info }: SessionCard) {
  const offered = quickAnswers(info.waiting_line)
  return offered.length <= ANSWERS_IN_ROW ? offered : []
}

function inForm({ info, above = [] }: SessionCard) {
  return quickAnswers(info.waiting_line, above, runningCommand(info)?.text ?? '')
}

function SecretActs({ busy, form }: Props) {
  return (
    <button
      class="button"
      data-testid="need-secret"
      aria-expanded={form.value}
      disabled={busy.value}
      onClick={() => (form.value = !form.value)}
    >
      <Icon name="lock" /> Enter it…
    </button>
  )
}

function TurnActs({ need, busy }: Props) {
  const hold = useHold()
  const { card } = need
  const [asker = ''] = card.info.waiting
  const give = (): void => {
    const done = `${sanitize(asker, 64)} has the turn in ${sanitize(card.info.name, 64)}`
    void settle(busy, done, () => hold.giveTurn(card.machine, card.info.id, asker))
  }
  return (
    <>
      <button class="button" data-testid="need-not-now" onClick={() => putOff(need)}>
        Not now
      </button>
      <button class="button" data-testid="need-give" disabled={busy.value} onClick={give}>
        Give it
      </button>
    </>
  )
}

/** Everything in it goes on at once, so it is asked first. */
function Resume({ need, busy }: Props) {
  const hold = useHold()
  const sure = useSignal(false)
  const { card } = need
  const resume = (): void => {
    if (!sure.value) sure.value = true
    else void settle(busy, '', () => hold.resume(card.machine, card.info.id))
  }
  return (
    <button
      class="button"
      data-testid="need-resume"
      disabled={busy.value}
      onBlur={() => (sure.value = false)}
      onClick={resume}
    >
      {sure.value ? 'Yes, resume all of it' : 'Resume…'}
    </button>
  )
}

function Acknowledge({ need: { card }, busy }: Props) {
  const hold = useHold()
  return (
    <button
      class="button"
      data-testid="need-acknowledge"
      disabled={busy.value}
      onClick={() => void settle(busy, '', () => hold.acknowledge(card.machine, card.info.id))}
    >
      Acknowledge
    </button>
  )
}

export function OpenNeed({ card, children = 'Open' }: { card: SessionCard; children?: ComponentChildren }) {
  return (
    <a class="button" data-testid="need-open" {...leadsTo(card)}>
      {children}
    </a>
  )
}

/** Attributes of a link to its session. */
export function leadsTo({ machineName, info }: SessionCard) {
  const session = isOver(info.state) ? info.id : info.name
  const place: Route = { page: 'session', machine: machineName, session }
  return {
    href: path(place),
    onClick: (event: MouseEvent): void => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return
      event.preventDefault()
      go(place)
    },
  }
}

/** Below the need: an answer in words, or a secret. */
export function NeedForm(props: Props) {
  if (!props.form.value) return null
  return props.need.kind === 'secret' ? <SecretForm {...props} /> : <AnswerForm {...props} />
}

function AnswerForm({ need, machine, busy, form }: Props) {
  const hold = useHold()
  const text = useSignal('')
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const offered = inRow(need.card).length > 0 ? [] : inForm(need.card)
  const send = async (answered: string): Promise<void> => {
    if (await answer(hold, need, busy, answered, 'Answered')) form.value = false
  }
  return (
    <form
      class="need-form"
      data-testid="need-form"
      onSubmit={(event) => {
        event.preventDefault()
        void send(text.value)
      }}
    >
      {offered.map((one) => (
        <button
          key={one.testid}
          type="button"
          class="button"
          data-testid={`need-${one.testid}`}
          disabled={busy.value}
          onClick={() => void send(one.text)}
        >
          {one.label}
        </button>
      ))}
      <label class="field grow">
        <span>Goes in as you, {sanitize(machine?.actor ?? '', 40)}</span>
        <input
          ref={field}
          class="mono"
          data-testid="need-input"
          placeholder="your answer"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => (text.value = event.currentTarget.value)}
          onKeyDown={(event) => event.key === 'Escape' && (form.value = false)}
        />
      </label>
      <button class="button primary" data-testid="need-send" disabled={busy.value || text.value === ''}>
        Send
      </button>
    </form>
  )
}

function SecretForm({ need, busy, form }: Props) {
  const hold = useHold()
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => field.current?.focus(), [])
  const send = async (event: Event): Promise<void> => {
    event.preventDefault()
    // Not the state of a component: the field itself is the only place where it ever is.
    const secret = field.current!.value
    field.current!.value = ''
    if (await answer(hold, need, busy, secret, 'Sent')) form.value = false
  }
  return (
    <form class="need-form" data-testid="need-form" onSubmit={(event) => void send(event)}>
      <label class="field grow">
        <span>Never shown. The journal records only its length.</span>
        <input
          ref={field}
          type="password"
          data-testid="need-input"
          aria-label="The secret"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          onKeyDown={(event) => event.key === 'Escape' && (form.value = false)}
        />
      </label>
      <button class="button primary" data-testid="need-send" disabled={busy.value}>
        Send
      </button>
    </form>
  )
}
