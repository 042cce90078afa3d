// The one line about a session: who does what, since when, and what you may do. Pure.

import type { ApprovalInfo, LinkState, SessionInfo, TurnState } from '../../hold/api'
import { wantsShort } from '../approval/approval-words'
import { age, ago, clock } from './durations'
import { movingOf, movingText } from './moving'
import type { HowFar } from './progress'
import { programOf, runningCommand, sinceOf } from './running'
import { endingText, isAsleep, shownState, stateText } from './session-state'
import { unreachedText } from './unreached'

/** What was recorded of the halt that is in force; null when that is not known here. */
export interface Halt {
  readonly actor: string
  readonly at: number
}

export interface LineFacts {
  readonly info: SessionInfo | null
  readonly link: LinkState
  readonly turn: TurnState | null
  readonly mayType: boolean // its rights include input, and it is not attached to watch only
  readonly mayResume: boolean
  readonly halt: Halt | null
  readonly far: HowFar | null // of a checkpoint or restore of it that is under way
  readonly held: ApprovalInfo | null // what waits for approval in it, the oldest
  readonly me: string // name of this device's actor; '' until known
  readonly machine: string
  readonly now: number
}

export interface StateLine {
  readonly mark: string // for tests and styles
  readonly tone: 'plain' | 'attention' | 'danger' | 'busy'
  readonly actor: string // whose work it is; '' when nobody's
  readonly before: string // the sentence: before, code, after; each may be empty
  readonly code: string
  readonly after: string
  readonly since: string
  readonly may: string // what you may do
}

export function stateLine(facts: LineFacts): StateLine {
  const { link, machine, now } = facts
  switch (link.at) {
    case 'connecting':
      return line({ mark: 'connecting', tone: 'busy', before: `Opening, on ${machine}` })
    case 'offline': {
      const { title } = unreachedText(link.unreached, machine)
      const last = facts.info ? `last known: ${known(facts.info)}` : ''
      return line({
        mark: 'offline',
        tone: 'busy',
        before: title,
        since: `since ${clock(link.since, now)}`,
        may: last,
      })
    }
    case 'fenced':
      return line({
        mark: 'fenced',
        tone: 'danger',
        before:
          facts.info?.lease?.state === 'taken'
            ? 'Fenced: another host has it'
            : 'Fenced: its host does not hold the lease',
        since: facts.info?.state_since ? `for ${age(now - facts.info.state_since)}` : '',
        may: 'nobody can type while it is fenced',
      })
    case 'ended':
      return over(facts, link.ending)
    default:
      return facts.info
        ? live(facts, facts.info)
        : line({ mark: 'connecting', tone: 'busy', before: 'Opening' })
  }
}

function over({ info, now }: LineFacts, ending: SessionInfo['ending']): StateLine {
  const text = endingText(ending)
  if (ending?.moved_to)
    return line({
      mark: 'moved',
      tone: 'busy',
      before: `Now runs on ${ending.moved_to}`,
      since: info?.ended_at ? `moved ${ago(info.ended_at, now)}` : '',
      may: 'this copy never runs again; its last screen and its record can be read',
    })
  const lost = typeof ending?.lost === 'string'
  return line({
    mark: lost ? 'lost' : isAsleep(ending) ? 'asleep' : 'ended',
    tone: lost || (ending?.code !== 0 && !isAsleep(ending)) ? 'danger' : 'plain',
    before: text.charAt(0).toUpperCase() + text.slice(1),
    since: info?.ended_at ? ago(info.ended_at, now) : '',
    may: 'its last screen and its record can be read',
  })
}

function live(facts: LineFacts, info: SessionInfo): StateLine {
  const state = shownState(info.state, info.lease, info.full_screen)
  const { mark } = stateText(state)
  const actor = runningCommand(info)?.actor ?? ''
  const since = sinceOf(info)
  const about = {
    mark,
    actor,
    since: since === null ? '' : `for ${age(facts.now - since)}`,
    may: [shapedText(info), whatYouMayDo(facts), besides(facts.far)].filter(Boolean).join(' · '),
  }
  if (facts.far?.still) return underWay(facts.far)
  const moving = movingOf(info)
  if (moving) about.may = [movingText(moving), about.may].filter(Boolean).join(' · ')
  if (facts.held && state !== 'halted' && state !== 'fenced') return held(facts, facts.held)
  const who = actor && (actor === facts.me ? 'You' : actor)
  const verb = (yours: string, theirs: string): string => `${who} ${who === 'You' ? yours : theirs} `
  switch (state) {
    case 'halted':
      return line({ ...about, ...halted(facts), actor: '', tone: 'danger' })
    case 'working':
      if (!who) return line({ ...about, code: programOf(info), after: ' is running' })
      return line({ ...about, before: verb('run', 'runs'), code: programOf(info) })
    case 'in_use':
      if (!who) return line({ ...about, code: programOf(info), after: ' is open' })
      return line({ ...about, before: verb('use', 'uses'), code: programOf(info) })
    case 'input':
      return line({ ...about, tone: 'attention', code: programOf(info), after: ' asks' })
    case 'secret':
      return line({ ...about, tone: 'attention', code: programOf(info), after: ' waits for a secret' })
    case 'stopped':
      return line({ ...about, tone: 'danger', code: programOf(info), after: ' is stopped' })
    case 'prompt':
      return line({ ...about, before: 'At the prompt in ', code: info.cwd })
    default:
      return line({ ...about, before: stateText(state).word })
  }
}

/** Its state is not known then: whoever wrote last may have put anything into it. */
function shapedText({ shaped_by }: SessionInfo): string {
  return shaped_by.length > 0 ? `the shell does not report; shaped by ${shaped_by.join(', ')}` : ''
}

/** Its processes stand still for it. */
function underWay({ work, phase, amount }: HowFar): StateLine {
  return line({
    mark: 'checkpointing',
    tone: 'busy',
    before: [work, phase].filter(Boolean).join(': '),
    since: amount,
    may: 'what is typed now waits until it is done',
  })
}

/** It runs on meanwhile. */
function besides(far: HowFar | null): string {
  return far ? [far.phase || far.work, far.amount].filter(Boolean).join(' ') : ''
}

function held({ me, now }: LineFacts, of: ApprovalInfo): StateLine {
  const yours = of.actor === me
  return line({
    mark: 'held',
    tone: 'attention',
    actor: of.actor,
    before: yours ? 'Your line waits: ' : `${of.actor} ${wantsShort(of)} `,
    code: of.text,
    since: `held ${ago(of.asked_at, now)}`,
    may: yours ? 'others must approve it; Ctrl+C withdraws it' : 'it waits for approval',
  })
}

function halted({ halt, info, now, me, mayResume }: LineFacts): Partial<StateLine> {
  const at = halt?.at ?? info?.state_since
  const by = halt ? ` by ${halt.actor === me ? 'you' : halt.actor}` : ''
  return {
    before: `Halted${by}`,
    since: at ? ago(at, now) : '',
    may: `nothing runs and nobody can type${mayResume ? '; you may resume it' : ''}`,
  }
}

function whatYouMayDo({ turn, mayType, info }: LineFacts): string {
  if (!mayType) return 'you are watching: your access does not include typing'
  if (!turn) return ''
  const { holder, holder_name, seized } = turn.turn
  if (!holder) return 'the turn is free: the first to type takes it'
  if (!turn.yours) {
    const busy = info && runningCommand(info)?.actor === holder_name
    if (turn.waiting) return 'you asked for the turn'
    return busy ? 'you are watching' : `you are watching, ${holder_name} holds the turn`
  }
  return `you hold the turn${seized ? ', seized' : ''}`
}

function known(info: SessionInfo): string {
  const running = runningCommand(info)
  const word = stateText(shownState(info.state, info.lease, info.full_screen)).word
  return running ? `${running.actor || 'somebody'} ran ${running.text}` : word
}

function line(some: Partial<StateLine>): StateLine {
  return { mark: '', tone: 'plain', actor: '', before: '', code: '', after: '', since: '', may: '', ...some }
}
