// Small labels for session state, actor and connection. Each has a word; the colour only helps to find it.

import type { Actor, SessionInfo } from '../../hold/api'
import { type Hue, hueOf } from '../text/actor-colour'
import { sanitize } from '../text/sanitize'
import { PageLink } from './page-link'
import { endingText, isOver, listedState, stateText } from '../text/session-state'

export function StateChip({ info, link = 'online' }: { info: SessionInfo; link?: string }) {
  // That it is fenced comes over the link before what is known of its lease.
  const name = link === 'fenced' ? 'fenced' : listedState(info)
  const words = stateText(name)
  const text = isOver(name) ? sanitize(endingText(info.ending), 120) : words.word
  const failed = isOver(name) && info.ending?.code !== 0 && !info.ending?.moved_to
  const tone = failed ? 'danger' : words.tone
  return (
    <span
      class={`chip tone-${tone} ${link === 'online' || name === 'fenced' ? '' : 'is-stale'}`}
      title={words.means}
    >
      <span class="dot" aria-hidden="true" />
      {text}
    </span>
  )
}

interface Who {
  readonly name: string
  readonly id?: string
  readonly actor?: Actor | undefined // as the machine knows it
  readonly kind?: string | undefined // where that is known before the actor is
  readonly you?: boolean
}

export function ActorName({ name, actor, id = actor?.id, kind = actor?.kind, you }: Who) {
  return (
    <span class="actor" title={kind ? `${name}, ${kind}` : name}>
      <Avatar name={name} hue={hueOf(actor?.colour, id || name)} kind={kind} />
      <span class="actor-name cut">{sanitize(name, 64)}</span>
      {you && <span class="actor-you">you</span>}
    </span>
  )
}

/** The same, leading to the actor's record on a machine. */
export function ActorLink({ machine, ...who }: Who & { readonly machine: string }) {
  const to = { page: 'score', machine, actor: who.name } as const
  return (
    <PageLink class="actor-link" to={to} data-testid="actor-link">
      <ActorName {...who} />
      <span class="unseen">: score</span>
    </PageLink>
  )
}

/** An initial on the actor's hue; round for people and square for agents, for those who do not tell colours apart. */
export function Avatar({ name, hue, kind }: { name: string; hue: Hue; kind?: string | undefined }) {
  const square = kind === 'agent' || kind === 'service'
  return (
    <span class={`avatar ${square ? 'is-agent' : ''}`} style={{ ...hue }} aria-hidden="true">
      {[...sanitize(name, 64).trim()][0]?.toUpperCase() ?? '?'}
    </span>
  )
}

interface LinkWords {
  readonly state: string
  readonly word?: string // where it says more than the state
  readonly why?: string
  readonly testid?: string
}

export function LinkState({ state, word = state, why, testid }: LinkWords) {
  return (
    <span class={`link-state link-${state}`} data-testid={testid} data-state={state} title={why || undefined}>
      <span class="dot" aria-hidden="true" />
      {word}
    </span>
  )
}
