// Shown when the connection to the session is not working. The screen keeps its last content, labelled as such.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { LinkState } from '../../hold/api'
import { now } from '../parts/clock'
import { clock } from '../text/durations'
import { endingText } from '../text/session-state'
import { sanitize } from '../text/sanitize'
import { errorText } from '../pages/error-texts'
import { go } from '../route'
import type { SessionController } from './session-controller'

export function Banner({ controller }: { controller: SessionController }) {
  const link = controller.handle.link.value
  const said = words(link)
  if (!said || (link.at === 'ended' && !controller.ready.value)) return null
  return (
    <div class={`banner ${said.tone}`} role="status" data-testid="session-banner" data-code={link.at}>
      <strong>{said.title}</strong>
      <span>{said.text}</span>
    </div>
  )
}

function words(link: LinkState): { title: string; tone: string; text: string } | null {
  if (link.at === 'offline') {
    const next = link.retryAt === null ? '' : ` Retrying ${untilText(link.retryAt)}.`
    const why = link.trouble?.message || link.why
    return {
      title: 'Offline',
      tone: 'tone-attention',
      text: `since ${clock(link.since, now.value)}${why ? `: ${sanitize(why, 200)}` : ''}. The session keeps running; this is its last screen.${next}`,
    }
  }
  if (link.at === 'fenced') {
    const page = errorText('fenced')
    return { title: 'Fenced', tone: 'tone-danger', text: `${page.why} ${page.todo}` }
  }
  if (link.at === 'ended') {
    return {
      title: isLost(link.ending) ? 'Lost' : 'Ended',
      tone: isLost(link.ending) ? 'tone-danger' : '',
      text: `${endingText(link.ending)}. This is its last screen; input is disabled.`,
    }
  }
  return null
}

function isLost(ending: { lost?: string | null } | null): boolean {
  return typeof ending?.lost === 'string'
}

function untilText(at: number): string {
  const left = Math.ceil(at - now.value)
  return left > 1 ? `in ${left} s` : 'now'
}

/** An ended session that was opened after its end: its last screen as text. */
export function EndedCard({ controller }: { controller: SessionController }) {
  const text = useSignal<string | null>(null)
  useEffect(() => {
    controller.handle.screen(true).then(
      (screen) => (text.value = screen.text),
      () => (text.value = ''),
    )
  }, [controller])
  const link = controller.handle.link.value
  const ending = link.at === 'ended' ? link.ending : null
  const lost = isLost(ending)
  const page = errorText(lost ? 'session_lost' : 'ended')
  return (
    <div class="ended-card" data-testid="error-page" data-code={page.code}>
      <h2 data-testid="error-title">{page.title}</h2>
      <p>
        {lost ? 'Why' : 'How it ended'}: {sanitize(endingText(ending))}. {page.why}
      </p>
      <p data-testid="error-hint">{page.todo}</p>
      <div class="actions">
        <button class="button" data-testid="error-action" onClick={() => go({ page: 'overview' })}>
          Go to the overview
        </button>
      </div>
      {text.value && (
        <>
          <h3>Last screen</h3>
          <pre class="last-screen">{text.value.trimEnd()}</pre>
        </>
      )}
    </div>
  )
}
