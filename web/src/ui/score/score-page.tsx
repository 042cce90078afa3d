// An actor's record on one machine: how its structured actions went, over time, and what they did that it had not
// declared. What a policy makes of it is the policy's.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { ActorScore, Machine, Trouble, UnintendedEffects } from '../../hold/api'
import { asHoldError } from '../../wire/errors'
import { useHold } from '../context'
import { actorNamed, learnActors } from '../overview/known-actors'
import { ErrorPage } from '../pages/error-page'
import { now } from '../parts/clock'
import { Icon } from '../parts/icon'
import { Avatar } from '../parts/labels'
import { PageLink } from '../parts/page-link'
import { ThemeButton } from '../parts/top-bar'
import { hueOf } from '../text/actor-colour'
import { clock } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { CountPlot, dayText, SharePlot } from './plot'
import { daysUpTo, utcDay } from './plot-points'
import {
  count,
  effectText,
  means,
  type Measure,
  MEASURES,
  percent,
  share,
  summary,
  TITLES,
} from './score-words'

const LOOK_MS = 5000 // between looks: no event tells of an action that was measured
const RANGES = [7, 30, 90] as const // days; the host keeps 90

export function ScorePage({ machine: name, actor }: { machine: string; actor: string }) {
  const hold = useHold()
  const machines = hold.machines.value
  const machine = machines.find((one) => one.name === name) ?? machines.find((one) => one.key === name)
  useEffect(() => learnActors(hold), [hold])
  if (!hold.ready.value) return <div class="page" />
  if (!machine) return <ErrorPage code="no_machine" about={`the score of ${actor} on ${name}`} />
  return <Asked key={`${machine.key}/${actor}`} machine={machine} actor={actor} />
}

function Asked({ machine, actor }: { machine: Machine; actor: string }) {
  const hold = useHold()
  const days = useSignal<number>(30)
  const score = useSignal<ActorScore | null>(null)
  const trouble = useSignal<Trouble | null>(null)
  useEffect(() => {
    if (machine.link !== 'online') return
    let over = false
    const look = (): void => {
      if (document.hidden) return
      hold.score(machine.key, actor, days.value).then(
        (found) => {
          if (over) return
          score.value = found
          trouble.value = null
        },
        (error: unknown) => {
          if (!over) trouble.value = asHoldError(error)
        },
      )
    }
    look()
    const timer = setInterval(look, LOOK_MS)
    return () => {
      over = true
      clearInterval(timer)
    }
  }, [hold, machine.key, machine.link, actor, days.value])
  useEffect(() => {
    document.title = `${actor} score · holdfast`
  }, [actor])
  if (score.value)
    return <Shown score={score.value} machine={machine} days={days.value} onDays={(n) => (days.value = n)} />
  if (trouble.value) {
    const { code } = trouble.value
    return (
      <ErrorPage code={code} trouble={trouble.value} about={`the score of ${actor} on ${machine.name}`} />
    )
  }
  if (machine.link === 'offline') return <ErrorPage code="offline" about={`the score of ${actor}`} />
  return <div class="page" data-testid="score-loading" />
}

interface ShownProps {
  readonly score: ActorScore
  readonly machine: Machine
  readonly days: number
  readonly onDays: (days: number) => void
}

function Shown({ score, machine, days, onDays }: ShownProps) {
  const actor = actorNamed(machine.key, score.name)
  const { actions } = score.totals
  const name = sanitize(score.name, 64)
  const hue = hueOf(actor?.colour, score.actor)
  return (
    <div class="page" data-testid="score" data-actor={score.name} data-actions={actions}>
      <header class="top row">
        <PageLink class="icon-button" to={{ page: 'overview' }} aria-label="Back to the overview">
          <Icon name="back" />
        </PageLink>
        <strong class="grow cut">
          {name} <span class="faint">score</span>
        </strong>
        <ThemeButton />
      </header>
      <main class="score" style={{ ...hue }}>
        <header class="score-head">
          <Avatar name={score.name} hue={hue} kind={actor?.kind} />
          <div class="grow">
            <h1>
              {actions === 0
                ? `${name} has carried out no actions in these days`
                : `${name} carried out ${count(actions, 'action')} in ${days} days`}
            </h1>
            <p class="score-about">
              {actions === 0 && score.recent === null ? (
                <>
                  Only structured actions have a score: <code>hold submit NAME --intent TEXT -- CMD</code>, or
                  the tool <code>submit</code> of an agent. What is typed is in the journal and not judged
                  here.
                </>
              ) : (
                sanitize(summary(score, machine.name), 300)
              )}
            </p>
          </div>
          <Ranges days={days} onDays={onDays} />
        </header>
        {actions > 0 && <Figures score={score} />}
        {actions > 0 && <Plots score={score} days={days} />}
        {actions > 0 && <Unintended score={score} machine={machine} />}
      </main>
    </div>
  )
}

function Ranges({ days, onDays }: { days: number; onDays: (days: number) => void }) {
  return (
    <div class="row" role="group" aria-label="Days shown">
      {RANGES.map((range) => (
        <button
          key={range}
          class="filter"
          data-testid={`score-days-${range}`}
          aria-pressed={range === days}
          onClick={() => onDays(range)}
        >
          {range} days
        </button>
      ))}
    </div>
  )
}

function Figures({ score: { totals } }: { score: ActorScore }) {
  return (
    <dl class="figures">
      {MEASURES.map((measure) => (
        <Figure
          key={measure}
          measure={measure}
          value={percent(share(measure, totals))}
          about={means(measure, totals)}
        />
      ))}
      <Figure measure="side-effects" value={String(totals.side_effects)} about="that were not declared" />
    </dl>
  )
}

function Figure({
  measure,
  value,
  about,
}: {
  measure: Measure | 'side-effects'
  value: string
  about: string
}) {
  return (
    <div class="figure" data-testid={`figure-${measure}`}>
      <dt>{measure === 'side-effects' ? 'Side effects' : TITLES[measure]}</dt>
      <dd>
        <strong>{value}</strong>
        <span class="figure-about">{about}</span>
      </dd>
    </div>
  )
}

function Plots({ score, days }: { score: ActorScore; days: number }) {
  const shown = daysUpTo(utcDay(now.value * 1000), days)
  return (
    <section class="score-card" aria-labelledby="score-over-time">
      <header class="score-legend">
        <h2 id="score-over-time" class="grow">
          {days} days, per cent of actions
        </h2>
        <span>band: 95 % sure</span>
        {score.totals.side_effects > 0 && <span class="score-mark">¦ effects that were not declared</span>}
      </header>
      {MEASURES.map((measure) => (
        <SharePlot key={measure} measure={measure} days={score.days} shown={shown} />
      ))}
      <CountPlot days={score.days} shown={shown} />
      <details class="score-table">
        <summary>The same as a table</summary>
        <div class="score-scroll" tabIndex={0} role="region" aria-label="Each day">
          <table>
            <thead>
              <tr>
                {['Day', 'Actions', 'Valid', 'Succeeded', 'Clean', 'Side effects'].map((head) => (
                  <th key={head} scope="col">
                    {head}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {score.days.toReversed().map(({ day, totals }) => (
                <tr key={day}>
                  <th scope="row">{dayText(day)}</th>
                  <td>{totals.actions}</td>
                  {MEASURES.map((measure) => (
                    <td key={measure}>{percent(share(measure, totals))}</td>
                  ))}
                  <td>{totals.side_effects}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  )
}

function Unintended({ score, machine }: { score: ActorScore; machine: Machine }) {
  const { unintended, totals } = score
  if (totals.side_effects === 0) return null
  return (
    <section aria-labelledby="score-unintended">
      <h2 id="score-unintended">Effects that were not intended</h2>
      {unintended.length === 0 ? (
        <p class="faint">They were in sessions that this device may not see, or too long ago to be kept.</p>
      ) : (
        <ul class="rows">
          {unintended.map((one) => (
            <Event key={one.action} of={one} machine={machine} />
          ))}
        </ul>
      )}
    </section>
  )
}

function Event({ of, machine }: { of: UnintendedEffects; machine: Machine }) {
  const { sessions } = useHold()
  const session = sessions.value.find((one) => one.machine === machine.key && one.info.id === of.session)
  const more = of.count - of.effects.length
  return (
    <li class="unintended" data-testid="unintended" data-action={of.action}>
      <span class="unintended-what">
        <code>{sanitize(of.command, 200)}</code> {sanitize(of.effects.map(effectText).join(', '), 400)}
        {more > 0 && ` and ${more} more`}
      </span>
      <span class="faint">
        <PageLink
          class="unintended-where"
          to={{ page: 'session', machine: machine.name, session: session?.info.name ?? of.session }}
        >
          {sanitize(session?.info.name ?? `session ${of.session.slice(0, 8)}`, 40)}
        </PageLink>{' '}
        · <time>{clock(of.at, now.value)}</time>
      </span>
    </li>
  )
}
