// Where a session comes from: which of its lives this is, who brought it back, which session it follows. Nothing of one that began
// here and was never away.

import { now } from '../parts/clock'
import { PageLink } from '../parts/page-link'
import { ago } from '../text/durations'
import { lineageText } from '../text/lineage'
import { sanitize } from '../text/sanitize'
import type { SessionController } from './session-controller'

export function LineageLine({ controller, machine }: { controller: SessionController; machine: string }) {
  const { follows, back } = controller.timeline.value.lineage
  const epoch = controller.handle.info.value?.epoch ?? 1
  const said = lineageText(epoch, back && { ...back, when: ago(back.at, now.value) })
  if (!said && !follows) return null
  return (
    <p class="lineage" data-testid="lineage">
      <span>{sanitize(said, 200)}</span>
      {follows && (
        <PageLink
          class="button small"
          data-testid="lineage-follows"
          title={follows}
          to={{ page: 'session', machine, session: follows }}
        >
          Follows {sanitize(follows, 8)}
        </PageLink>
      )}
      <button
        class="button small"
        data-testid="lineage-certificate"
        onClick={() => (controller.certifying.value = true)}
      >
        Certificate…
      </button>
    </p>
  )
}
