// One thing that waits for approval: exactly what would be done, by whom, who had a part in it, what changed since, and
// two buttons of one size. What changed under the reader's eyes must be read again before it can be approved.

import { useEffect } from 'preact/hooks'
import type { ApprovalCard, Contributor, Machine } from '../../hold/api'
import { useHold } from '../context'
import { actorNamed, learnActors } from '../overview/known-actors'
import { ErrorPage } from '../pages/error-page'
import { now } from '../parts/clock'
import { Icon } from '../parts/icon'
import { Avatar } from '../parts/labels'
import { PageLink } from '../parts/page-link'
import { ThemeButton } from '../parts/top-bar'
import { hueOf } from '../text/actor-colour'
import { age, ago, clock } from '../text/durations'
import { sanitize } from '../text/sanitize'
import {
  changesOf,
  isPending,
  partText,
  policyText,
  quorumText,
  risksOf,
  settledText,
  wants,
} from './approval-words'
import { Decision } from './decision'
import { ExactText } from './drawn-text'

const LOOK_MS = 3000 // between looks at what changed in the session: no event tells of that

export function ApprovalPage({ machine: name, approval }: { machine: string; approval: string }) {
  const hold = useHold()
  const machines = hold.machines.value
  const machine = machines.find((one) => one.name === name) ?? machines.find((one) => one.key === name)
  useEffect(() => learnActors(hold), [hold])
  if (!hold.ready.value) return <div class="page" />
  if (!machine) return <ErrorPage code="no_machine" about={`an approval on ${name}`} />
  const card = hold.approvals.value.find((one) => one.machine === machine.key && one.info.id === approval)
  if (card) return <Shown key={approval} card={card} machine={machine} />
  if (machine.link === 'connecting') return <div class="page" data-testid="approval-loading" />
  return (
    <ErrorPage code={machine.link === 'online' ? 'no_approval' : 'offline'} about={`on ${machine.name}`} />
  )
}

function Shown({ card, machine }: { card: ApprovalCard; machine: Machine }) {
  const hold = useHold()
  const { info } = card
  const pending = isPending(card)
  useEffect(() => {
    document.title = `${info.actor} wants to ${wants(info)} · holdfast`
  }, [info.id])
  useEffect(() => {
    if (!pending) return
    const look = (): void => {
      if (!document.hidden) hold.lookAtApprovals(machine.key).catch(() => undefined) // offline: the page says so
    }
    look()
    const timer = setInterval(look, LOOK_MS)
    return () => clearInterval(timer)
  }, [hold, machine.key, pending])
  const session = { page: 'session', machine: card.machineName, session: info.name } as const
  const actor = info.contributors.find(({ name }) => name === info.actor)
  return (
    <div class="page approval-page" data-testid="approval" data-status={info.status} data-approval={info.id}>
      <header class="top row">
        <PageLink class="icon-button" to={{ page: 'overview' }} aria-label="Back to the overview">
          <Icon name="back" />
        </PageLink>
        <strong class="grow cut">Approval</strong>
        <PageLink class="button small" to={session}>
          Open {sanitize(info.name, 40)}
        </PageLink>
        <ThemeButton />
      </header>
      <main class="approval">
        <div class="approval-body">
          <header class="approval-head">
            <Avatar
              name={info.actor}
              hue={hueOf(actorNamed(machine.key, info.actor)?.colour, actor?.actor ?? info.actor)}
              kind={actor?.kind}
            />
            <h1>
              {sanitize(info.actor, 64)} wants to {wants(info)}
            </h1>
            <Chips card={card} />
          </header>
          {info.text_known ? (
            <ExactText text={info.text} ends={info.kind === 'line' || info.kind === 'input'} />
          ) : (
            <p class="exact-hidden" data-testid="approval-text-unknown">
              The shell does not say what its line is. Whoever approves it approves whatever is at its prompt.
            </p>
          )}
          <div class="approval-columns">
            <Facts card={card} />
            <Contributors card={card} />
            <Changes card={card} />
          </div>
        </div>
        {pending ? (
          <Decision card={card} machine={machine} />
        ) : (
          <p class={`approval-settled tone-${info.status === 'approved' ? 'good' : 'danger'}`} role="status">
            <span data-testid="approval-settled">{sanitize(settledText(card, machine.actor), 300)}</span>
          </p>
        )}
      </main>
    </div>
  )
}

function Chips({ card: { info } }: { card: ApprovalCard }) {
  if (info.status !== 'pending') return null
  const left = info.expires_at - now.value
  const quorum = quorumText(info)
  return (
    <span class="approval-chips">
      {risksOf(info).map((risk) => (
        <span key={risk} class="chip tone-danger" data-testid="approval-risk">
          {risk}
        </span>
      ))}
      {quorum && (
        <span class="chip tone-busy" data-testid="approval-quorum">
          {quorum}
        </span>
      )}
      <span class="chip tone-attention" data-testid="approval-expiry">
        {left > 0 ? `${age(left)} left, then refused` : 'expires now'}
      </span>
    </span>
  )
}

function Facts({ card: { info, machineName } }: { card: ApprovalCard }) {
  return (
    <dl class="facts">
      <dt>Session</dt>
      <dd>
        <strong>{sanitize(info.name, 64)}</strong> on {sanitize(machineName, 64)}
      </dd>
      <dt>Directory</dt>
      <dd class="mono" data-testid="approval-cwd">
        {sanitize(info.cwd, 300) || 'not known'}
      </dd>
      <dt>Runs as</dt>
      <dd data-testid="approval-user">{sanitize(info.user, 64) || 'not known'}</dd>
      <dt>Workspace</dt>
      <dd class="mono" data-testid="approval-workspace">
        {sanitize(info.workspace, 300) || 'not known'}
      </dd>
      <dt>Held by</dt>
      <dd data-testid="approval-policy">
        {sanitize(policyText(info.policy), 120)}, {ago(info.asked_at, now.value)} (
        {clock(info.asked_at, now.value)})
      </dd>
      <dt>Why</dt>
      <dd data-testid="approval-reason">{sanitize(info.reason, 300) || 'the policy does not say'}</dd>
      {info.approved_by.length > 0 && (
        <>
          <dt>Approved by</dt>
          <dd>{sanitize(info.approved_by.join(', '), 200)}</dd>
        </>
      )}
    </dl>
  )
}

function Contributors({ card }: { card: ApprovalCard }) {
  const { info } = card
  const actors = [...new Set(info.contributors.map(({ actor }) => actor))]
  return (
    <section aria-labelledby="who-staged">
      <h2 id="who-staged">Who had a part in it</h2>
      <ul class="contributors">
        {actors.map((actor) => (
          <Contributions
            key={actor}
            of={info.contributors.filter((one) => one.actor === actor)}
            card={card}
          />
        ))}
      </ul>
    </section>
  )
}

/** All that one actor did for it. */
function Contributions({ of, card }: { of: readonly Contributor[]; card: ApprovalCard }) {
  const { name, kind, actor } = of[0]!
  return (
    <li data-testid="contributor" data-actor={name}>
      <Avatar name={name} hue={hueOf(actorNamed(card.machine, name)?.colour, actor)} kind={kind} />
      <span>
        <PageLink to={{ page: 'score', machine: card.machineName, actor: name }} title={`Score of ${name}`}>
          <strong>{sanitize(name, 64)}</strong>
        </PageLink>{' '}
        <span class="faint">{kind}</span>
        <br />
        {of.map((one, index) => (
          <span key={index} data-part={one.part}>
            {index > 0 && ', '}
            {sanitize(partText(one), 300)}
            {one.command > 0 && <span class="faint"> (command {one.command})</span>}
          </span>
        ))}
      </span>
    </li>
  )
}

function sinceUnknown(some: boolean): string {
  const more = some ? 'What else changed' : 'What changed'
  return `${more} is not known: it was asked before the host's daemon was restarted, or the shell does not say.`
}

function Changes({ card: { info } }: { card: ApprovalCard }) {
  const changes = changesOf(info)
  if (info.status !== 'pending') return null
  return (
    <section aria-labelledby="what-changed">
      <h2 id="what-changed">What changed since it was asked</h2>
      {!info.changes_known && (
        <p class="approval-unknown" data-testid="approval-changes-unknown">
          {sinceUnknown(changes.length > 0)}
        </p>
      )}
      {changes.length === 0 ? (
        info.changes_known && (
          <p class="faint" data-testid="approval-no-changes">
            Nothing in the shell's directory, variables, aliases, functions and options, or in files that
            others wrote and it uses.
          </p>
        )
      ) : (
        <ul class="approval-changes mono" data-testid="approval-changes">
          {changes.map((line) => (
            <li key={line}>{sanitize(line, 400)}</li>
          ))}
        </ul>
      )}
    </section>
  )
}
