// Shown when the connection to the session is not working. The screen keeps its last content, labelled as such.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { LinkState } from '../../hold/api'
import { KEEP_UNSENT_S } from '../../hold/unacked-inputs'
import { now } from '../parts/clock'
import { InlineCode } from '../parts/inline-code'
import { span } from '../text/durations'
import { endingText, isAsleep } from '../text/session-state'
import { sanitize } from '../text/sanitize'
import { standstill } from '../text/standstill'
import { unreachedText } from '../text/unreached'
import { errorText } from '../pages/error-texts'
import { go } from '../route'
import type { SessionController } from './session-controller'
import { BringBack, useWayBack } from './bring-back'
import { Facts } from './standstill-card'

export function Banner({ controller, machine }: { controller: SessionController; machine: string }) {
  const link = controller.handle.link.value
  const said = words(link, machine, controller.ready.value)
  if (!said || (link.at === 'ended' && !controller.ready.value)) return null
  return (
    <div class={`banner ${said.tone}`} role="status" data-testid="session-banner" data-code={link.at}>
      <span>
        <InlineCode text={said.text} />
      </span>
    </div>
  )
}

/** What the state line has no room for: what it means, and what still works. */
function words(link: LinkState, machine: string, drawn: boolean): { tone: string; text: string } | null {
  if (link.at === 'offline') {
    const { means, todo } = unreachedText(link.unreached, sanitize(machine, 64))
    const next = link.retryAt === null ? '' : ` Trying again ${untilText(link.retryAt)}.`
    const works = drawn
      ? ` You can read, search and copy this last screen; keys typed now are sent if it is back within ${span(KEEP_UNSENT_S)}.`
      : ''
    if (link.trouble) return { tone: 'tone-danger', text: `${sanitize(link.trouble.message, 200)}.${works}` }
    return { tone: 'tone-busy', text: `${means} ${todo}${works}${next}` }
  }
  if (link.at === 'ended' && !isLost(link.ending) && !isAsleep(link.ending) && !link.ending?.moved_to) {
    return {
      tone: '',
      text: `Ended: ${sanitize(endingText(link.ending))}. This is its last screen; nobody can type into it.`,
    }
  }
  return null // what is fenced, lost or asleep has facts of its own below
}

export function isLost(ending: { lost?: string | null } | null): boolean {
  return typeof ending?.lost === 'string'
}

function untilText(at: number): string {
  const left = Math.ceil(at - now.value)
  return left > 1 ? `in ${left} s` : 'now'
}

/** An ended session that was opened after its end: its last screen as text. */
export function EndedCard({ controller, machine }: { controller: SessionController; machine: string }) {
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
  const asleep = isAsleep(ending)
  const page = errorText(lost ? 'session_lost' : asleep ? 'session_asleep' : 'ended')
  const way = useWayBack(controller)
  const facts = standstill(link, controller.handle.info.value, machine, way)
  return (
    <div class="ended-card" data-testid="error-page" data-code={page.code}>
      <h2 data-testid="error-title">{page.title}</h2>
      <p>
        {lost
          ? `Why: ${sanitize(ending?.lost || 'not known')}.`
          : asleep
            ? page.why
            : `How it ended: ${sanitize(endingText(ending))}. ${page.why}`}
      </p>
      {facts.length > 0 && <Facts facts={facts} />}
      {!asleep && (
        <p data-testid="error-hint">
          <InlineCode text={page.todo} />
        </p>
      )}
      <div class="actions">
        <BringBack controller={controller} machine={machine} way={way} />
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
