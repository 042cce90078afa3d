// Which changes in the sessions deserve a notification. Pure: two lists in, notices out.

import type { ApprovalCard, ApprovalInfo, Machine, SessionCard } from '../../hold/api'
import { stagedText, waitsForYou, wantsShort } from '../approval/approval-words'
import { path } from '../route'
import { sanitize } from '../text/sanitize'
import { endingText, isOver, needsInput, shownState } from '../text/session-state'
import type { Outside } from './notify'

export function noticesFor(
  before: readonly SessionCard[],
  after: readonly SessionCard[],
  machines: readonly Machine[],
): Outside[] {
  const known = new Map(before.map((card) => [`${card.machine}/${card.info.id}`, card]))
  const notices: Outside[] = []
  for (const card of after) {
    const was = known.get(`${card.machine}/${card.info.id}`)
    // A session that is seen for the first time is no change.
    if (was)
      notices.push(
        ...changes(
          was,
          card,
          machines.find((machine) => machine.key === card.machine),
        ),
      )
  }
  return notices
}

function changes(was: SessionCard, is: SessionCard, machine: Machine | undefined): Outside[] {
  const notices: Outside[] = []
  const before = shownState(was.info.state, was.info.lease, was.info.full_screen)
  const state = shownState(is.info.state, is.info.lease, is.info.full_screen)
  const name = `${is.info.name} on ${is.machineName}`
  const place = path({ page: 'session', machine: is.machineName, session: is.info.name })
  const about = (title: string, body: string): Outside => ({
    title,
    body: sanitize(body, 120),
    tag: `${is.machine}/${is.info.id}`,
    path: place,
  })
  if (state !== before && needsInput(state)) {
    const what = state === 'secret' ? 'waits for a secret' : 'waits for input'
    notices.push(about(`${name} ${what}`, is.info.waiting_line))
  }
  if (isOver(state) && !isOver(before))
    notices.push(about(`${name} ${overWord(is.info)}`, endingText(is.info.ending)))
  if (machine && is.info.holder === machine.actor) {
    const fresh = is.info.waiting.filter((who) => !was.info.waiting.includes(who))
    for (const who of fresh) notices.push(about(`${sanitize(who, 64)} asks for your turn`, name))
  }
  return notices
}

function overWord({ state, ending }: SessionCard['info']): string {
  if (state === 'lost') return 'was lost'
  return ending?.moved_to ? 'moved' : 'ended'
}

const COMMAND_MAX_CHARS = 300 // what a notification of a system shows at most, and more
const STAGED_MAX_CHARS = 200

/** The exact command, then who else had a part in it. */
function bodyOf(info: ApprovalInfo): string {
  const text = info.text_known ? sanitize(info.text, COMMAND_MAX_CHARS) : 'The shell does not say what it is.'
  const staged = stagedText(info)
  return staged ? `${text}\n${sanitize(staged, STAGED_MAX_CHARS)}` : text
}

/** What began to wait for this device: with the exact command, so that a glance tells whether it is urgent. */
export function approvalNotices(
  before: readonly ApprovalCard[],
  after: readonly ApprovalCard[],
  machines: readonly Machine[],
): Outside[] {
  const known = new Set(before.map((card) => `${card.machine}/${card.info.id}`))
  return after
    .filter((card) => !known.has(`${card.machine}/${card.info.id}`))
    .filter((card) =>
      waitsForYou(
        card,
        machines.find(({ key }) => key === card.machine),
      ),
    )
    .map((card) => ({
      title: `${sanitize(card.info.actor, 64)} ${wantsShort(card.info)} this in ${card.info.name} on ${card.machineName}`,
      body: bodyOf(card.info),
      tag: `approval/${card.machine}/${card.info.id}`,
      path: path({ page: 'approval', machine: card.machineName, approval: card.info.id }),
    }))
}
