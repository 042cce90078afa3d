// Under the terminal of a session that is fenced, lost or asleep: what is safe, gone, unknown, and what comes next.

import { Fragment } from 'preact'
import { InlineCode } from '../parts/inline-code'
import { sanitize } from '../text/sanitize'
import { type Fact, standstill } from '../text/standstill'
import { BringBack, useWayBack } from './bring-back'
import type { SessionController } from './session-controller'

export function StandstillCard({ controller, machine }: { controller: SessionController; machine: string }) {
  const { link, info } = controller.handle
  const way = useWayBack(controller)
  const facts = standstill(link.value, info.value, machine, way)
  // What is opened after its end has a page of its own, with the same in it.
  if (facts.length === 0 || (link.value.at === 'ended' && !controller.ready.value)) return null
  return (
    <section
      class="standstill"
      aria-label="What is known"
      data-testid="session-banner"
      data-code={link.value.at}
    >
      {/* First: a phone has no room for all of the facts. */}
      <div class="actions row">
        <BringBack controller={controller} machine={machine} way={way} />
      </div>
      <Facts facts={facts} />
    </section>
  )
}

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([word, text]) => (
        <Fragment key={word}>
          <dt>{word}</dt>
          <dd>{word === 'Next' ? <InlineCode text={sanitize(text, 400)} /> : sanitize(text, 400)}</dd>
        </Fragment>
      ))}
    </dl>
  )
}
