// Above the terminal of a session that moves: its phases, and which host runs it.

import { Icon } from '../parts/icon'
import { sanitize } from '../text/sanitize'
import { movingOf, movingText, stepsOf } from '../text/moving'
import type { SessionController } from './session-controller'

export function MoveCard({ controller, machine }: { controller: SessionController; machine: string }) {
  const info = controller.handle.info.value
  const move = movingOf(info)
  if (!info || !move || controller.handle.link.value.at !== 'online') return null
  const [from, to] = move.leaves ? [machine, move.host] : [move.host, machine]
  const switched = info.superposition === 'post-cutover'
  return (
    <section class="move-card" aria-label="Move" data-testid="move-card" data-phase={move.phase}>
      <p class="row">
        <Icon name="move" />
        <strong>{sanitize(movingText(move), 120)}</strong>
        {move.reason && <span class="tone-danger wrap">{sanitize(move.reason, 200)}</span>}
      </p>
      <ol class="phases">
        {stepsOf(move).map(({ word, is }) => (
          <li
            key={word}
            class={`is-${is.replace(' ', '-')}`}
            aria-current={is === 'now' ? 'step' : undefined}
          >
            {is === 'done' && <Icon name="check" />} {word}
          </li>
        ))}
      </ol>
      <p class="faint">
        {sanitize(from, 64)} {switched ? 'has given it away' : `runs it, epoch ${info.epoch}`} ·{' '}
        {sanitize(to, 64)} {switched ? 'runs it' : 'receives it'}
      </p>
    </section>
  )
}
