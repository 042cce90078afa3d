// Journal entries folded into what the timeline shows: commands with their actors, changes of the turn. Pure;
// entries come in order, and repeated ones are ignored.

import type { Contributor, Handoff, JournalEntry } from '../../hold/api'
import { rightsLine } from '../text/rights'
import { bytesText } from '../text/sizes'

export interface Command {
  readonly number: number
  readonly text: string
  readonly cwd: string
  readonly actor: string // name; '' when nobody pressed Enter
  readonly authors: readonly string[]
  readonly originators: readonly Originator[] // others who had a part in it, as the gate knew them
  readonly beganAt: number
  readonly endedAt: number | null
  readonly status: number | null
}

/** Who is behind a command beside whoever set it off, and how. */
export type Originator = Pick<Contributor, 'name' | 'part' | 'what' | 'command' | 'actor' | 'kind'>

export interface TimelineEvent {
  readonly seq: number
  readonly at: number
  readonly actor: string
  readonly text: string
  readonly tone: 'plain' | 'danger'
  readonly kind: string // as in the journal
  readonly step?: string // of a move of the turn
  readonly freedBy?: string // who had the turn, of a move after which nobody has it
  readonly partial?: boolean // a halt of what one actor started: the rest runs on
}

export interface TimelineModel {
  readonly through: number // last record that is in here
  readonly leftOut: number // records before the first one in here
  readonly commands: readonly Command[] // oldest first
  readonly events: readonly TimelineEvent[]
  readonly lineage: Lineage
  readonly judged: Judged | null // the last line that was allowed; the command with its text is the next one
}

/** Where it comes from, as far as its record was read. */
export interface Lineage {
  readonly follows: string // id of the session before it; '' when there was none
  readonly back: { readonly at: number; readonly actor: string; readonly kind: string } | null // when it was last restored
}

interface Judged {
  readonly text: string
  readonly originators: readonly Originator[]
}

/** The halt that is in force as far as this was read; null after a resume, and without one. */
export function haltOf({ events }: TimelineModel): { actor: string; at: number } | null {
  const last = events.findLast(({ kind, partial }) => !partial && (kind === 'halted' || kind === 'resumed'))
  return last?.kind === 'halted' ? { actor: last.actor, at: last.at } : null
}

export const EMPTY: TimelineModel = {
  through: 0,
  leftOut: 0,
  commands: [],
  events: [],
  lineage: { follows: '', back: null },
  judged: null,
}
const KEPT = 1000 // of each: a panel, not an archive

/** The first look: what the host sums up of the past. */
export function seeded(handoff: Handoff): TimelineModel {
  return {
    ...EMPTY,
    through: handoff.through_seq,
    leftOut: handoff.since_seq,
    commands: handoff.commands.map((one) => ({
      number: one.seq,
      text: one.text,
      cwd: one.cwd,
      actor: one.actor,
      authors: one.authors,
      originators: [],
      beganAt: one.began_at,
      endedAt: one.ended_at,
      status: one.status,
    })),
    events: handoff.moves.map((move, index) => ({
      seq: -handoff.moves.length + index, // before every record that comes with a number
      at: move.at,
      actor: move.holder || move.before,
      kind: 'turn_moved',
      step: move.step,
      ...(move.holder ? {} : { freedBy: move.before }),
      ...moveText(move.step, move.before, move.holder, move.reason),
    })),
  }
}

/** What stands in the timeline: a command, an event, or turn moves that are not worth a line each. */
export type TimelineRow =
  | { readonly kind: 'command'; readonly at: number; readonly command: Command }
  | { readonly kind: 'event'; readonly at: number; readonly event: TimelineEvent }
  | { readonly kind: 'turns'; readonly at: number; readonly events: readonly TimelineEvent[] }

const TURN_KINDS = new Set(['turn_moved', 'turn_asked'])

/** Newest first. Turn moves in a row are one line; one that a command beside it says already is none. */
export function rowsOf({ commands, events }: TimelineModel): TimelineRow[] {
  const all = [
    ...events.map((event) => ({ at: event.at, event })),
    ...commands.map((command) => ({ at: command.beganAt, command })),
  ].sort((one, other) => one.at - other.at)
  const rows: TimelineRow[] = []
  let turns: TimelineEvent[] = []
  let last: Command | null = null
  const fold = (next: Command | null): void => {
    const worth = turns.filter((event) => !introduces(event, next) && !concludes(event, [last, next]))
    const open = next === null && worth.at(-1)?.kind === 'turn_asked' ? worth.pop() : undefined // not answered yet
    if (worth.length === 1) rows.push({ kind: 'event', at: worth[0]!.at, event: worth[0]! })
    else if (worth.length > 1) rows.push({ kind: 'turns', at: worth.at(-1)!.at, events: worth })
    if (open) rows.push({ kind: 'event', at: open.at, event: open })
    turns = []
  }
  for (const one of all) {
    if ('event' in one && TURN_KINDS.has(one.event.kind) && one.event.tone === 'plain') {
      turns.push(one.event)
      continue
    }
    fold('command' in one ? one.command : null)
    if ('command' in one) {
      rows.push({ kind: 'command', ...one })
      last = one.command
    } else rows.push({ kind: 'event', ...one })
  }
  fold(null)
  return rows.reverse()
}

/** That its actor took the turn for it is said by the command. */
function introduces(event: TimelineEvent, next: Command | null): boolean {
  return event.step === 'request' && next !== null && event.actor === next.actor
}

/** That the turn was free again after an actor ran a command and left. A line that is sent and not waited for is reported
    by the shell after its sender left: its command is the next one. */
function concludes(event: TimelineEvent, beside: readonly (Command | null)[]): boolean {
  return (
    event.step === 'leave' && beside.some((command) => command !== null && event.freedBy === command.actor)
  )
}

type Names = Readonly<Record<string, string>>

export function added(past: TimelineModel, entries: readonly JournalEntry[], names: Names): TimelineModel {
  let now = past
  for (const entry of entries) if (entry.seq > now.through) now = one(now, entry, names)
  if (now.commands.length > KEPT) now = { ...now, commands: now.commands.slice(-KEPT) }
  if (now.events.length > KEPT) now = { ...now, events: now.events.slice(-KEPT) }
  return now
}

function one(past: TimelineModel, entry: JournalEntry, names: Names): TimelineModel {
  const now = { ...past, through: entry.seq, lineage: descended(past.lineage, entry, names) }
  if (entry.kind === 'command_began') return { ...now, judged: null, commands: began(past, entry, names) }
  if (entry.kind === 'command_ended') return { ...now, commands: ended(past.commands, entry) }
  if (entry.kind === 'judged' && entry.fields.outcome === 'allow') {
    const judged = { text: text(entry.fields.text), originators: originators(entry, names) }
    return entry.fields.kind === 'line' ? { ...now, judged } : now
  }
  const said = happening(entry, names)
  return said
    ? { ...now, events: [...past.events, { seq: entry.seq, at: entry.at, kind: entry.kind, ...said }] }
    : now
}

function descended(past: Lineage, { kind, at, actor, fields }: JournalEntry, names: Names): Lineage {
  if (kind === 'began') return { ...past, follows: text(fields.predecessor) }
  if (kind !== 'restored') return past
  return { ...past, back: { at, actor: named(actor, names), kind: text(fields.kind) } }
}

function began({ commands, judged }: TimelineModel, entry: JournalEntry, names: Names): readonly Command[] {
  const command: Command = {
    number: int(entry.fields.number),
    text: text(entry.fields.text),
    cwd: text(entry.fields.cwd),
    actor: named(entry.actor, names),
    authors: list(entry.fields.authors).map((id) => named(id, names)),
    originators: behind(judged, entry, names),
    beganAt: entry.at,
    endedAt: null,
    status: null,
  }
  return [...commands.filter((other) => other.number !== command.number), command]
}

/** As a policy was told, with the part of each; else as the shell's state tells. */
function behind(judged: Judged | null, entry: JournalEntry, names: Names): readonly Originator[] {
  if (judged && judged.text.trim() === text(entry.fields.text).trim()) return judged.originators
  const uses = list(entry.fields.uses).map((use) => use.split('@')[0]!)
  return list(entry.fields.originators)
    .filter((actor) => actor !== entry.actor)
    .map((actor) => ({
      actor,
      name: named(actor, names),
      kind: '' as Originator['kind'],
      part: 'state',
      what: uses.join(', '),
      command: 0,
    }))
}

function ended(commands: readonly Command[], entry: JournalEntry): readonly Command[] {
  const number = int(entry.fields.number)
  return commands.map((command) =>
    command.number === number ? { ...command, endedAt: entry.at, status: int(entry.fields.status) } : command,
  )
}

type Said = Pick<TimelineEvent, 'actor' | 'text' | 'tone' | 'step' | 'freedBy' | 'partial'>

function happening(entry: JournalEntry, names: Names): Said | null {
  const actor = named(entry.actor, names)
  const plain = (said: string): Said => ({ actor, text: `${actor} ${said}`, tone: 'plain' })
  switch (entry.kind) {
    case 'turn_moved': {
      const [before, holder] = [text(entry.fields.before), text(entry.fields.holder)].map(
        (id) => id && named(id, names),
      ) as [string, string]
      const step = text(entry.fields.step)
      return {
        actor,
        step,
        ...(holder ? {} : { freedBy: before }),
        ...moveText(step, before, holder, text(entry.fields.reason)),
      }
    }
    case 'turn_asked':
      return plain('asked for the turn')
    case 'halted': {
      const frozen = entry.fields.frozen === true
      if (!entry.actor && frozen) return { actor, text: 'all its processes are frozen', tone: 'danger' } // as it is fenced
      const of = /^actor:(.+)$/.exec(text(entry.fields.scope))?.[1]
      const what = of ? `what ${named(of, names)} started` : 'the session'
      return {
        actor,
        text: `${actor} ${frozen ? `halted ${what}` : `asked for a halt of ${what}; not everything stopped`}`,
        tone: 'danger',
        ...(of ? { partial: true } : {}),
      }
    }
    case 'resumed':
      return plain('resumed the session')
    case 'signalled':
      return plain(`sent signal ${int(entry.fields.signal)}`)
    case 'blind_turn':
      return plain(entry.fields.on === true ? 'began a blind turn' : 'ended the blind turn')
    case 'refused':
      if (entry.fields.code === 'gate_refused') return null // its judgement says why
      return {
        actor,
        text: `${actor} was refused: ${text(entry.fields.what)} (${text(entry.fields.code)})`,
        tone: 'danger',
      }
    case 'judged':
      if (entry.fields.outcome !== 'refuse') return null
      return { actor, text: `the policy refused ${actor}: ${what(entry)}${why(entry)}`, tone: 'danger' }
    case 'approval_asked':
      return plain(`waits for approval: ${what(entry)}`)
    case 'approved':
      return plain(`approved${note(entry)}`)
    case 'denied':
      return { actor, text: `${actor} denied it${note(entry)}`, tone: 'danger' }
    case 'approval_over':
      return entry.fields.how === 'expired'
        ? { actor: 'the host', text: 'nobody approved it in time: refused', tone: 'danger' }
        : plain('withdrew what waited for approval')
    case 'fenced':
      return {
        actor: 'the host',
        text:
          entry.fields.cause === 'taken'
            ? 'another host has the session; here it stays frozen for good'
            : 'the host lost the lease; the session is fenced',
        tone: 'danger',
      }
    case 'leased': // the first one is its beginning
      return int(entry.fields.before) > 0 ? plain('holds the lease again; the session goes on') : null
    case 'end_asked':
      return { actor, text: `${actor} asked to end the session`, tone: 'danger' }
    case 'renamed':
      return plain(`renamed the session to ${text(entry.fields.name)}`)
    case 'shaped': {
      const said = shapedNames(list(entry.fields.keys), int(entry.fields.left_out))
      return said ? plain(`changed ${said}`) : null
    }
    case 'adopted':
      return plain(`answers for ${text(entry.fields.target)} from now on`)
    case 'envelope_set': {
      const whom = named(text(entry.fields.subject), names)
      const rights = list(entry.fields.rights)
      return plain(rights.length > 0 ? `gave ${whom}: ${rightsLine(rights)}` : `took all rights from ${whom}`)
    }
    case 'actor_revoked': {
      const whom = named(text(entry.fields.subject), names)
      return { actor, text: `${actor} revoked the access of ${whom}`, tone: 'danger' }
    }
    case 'gate_policy_set': {
      const scope = text(entry.fields.scope).replace(/^session:.*/, 'this session')
      return plain(
        text(entry.fields.digest)
          ? `set the policy of ${scope}: ${text(entry.fields.source)}`
          : `removed the policy of ${scope}`,
      )
    }
    case 'pinned':
      return plain(
        entry.fields.pinned === true
          ? 'keeps the session from being reaped'
          : 'no longer keeps it from being reaped',
      )
    case 'reap_warned':
      return { actor, text: `unused: it will be ${reaping(entry)}`, tone: 'danger' }
    case 'reaped':
      return { actor, text: `unused, so ${actor} had it ${reaping(entry)}`, tone: 'danger' }
    case 'revived': {
      const left = list(entry.fields.left_behind).length
      const behind =
        left > 0 ? `; ${left} ${left === 1 ? 'thing' : 'things'} did not come back: hold log` : ''
      return plain(`started it to follow ${text(entry.fields.predecessor)}${behind}`)
    }
    case 'checkpointed': {
      const made = `${bytesText(int(entry.fields.size))}, stood still for ${Math.max(1, Math.round(float(entry.fields.frozen_ms)))} ms`
      return plain(
        `${entry.fields.ended === true ? 'put the session to sleep in a checkpoint' : 'made a checkpoint'} (${made})${note(entry)}`,
      )
    }
    case 'checkpoint_failed':
      return {
        actor,
        text: `${actor} could not make a checkpoint${why(entry)}; the session runs on`,
        tone: 'danger',
      }
    case 'restored': {
      const resets = int(entry.fields.resets)
      const lost = int(entry.fields.inputs_lost)
      const not = [
        resets > 0 && `${resets} ${resets === 1 ? 'connection was' : 'connections were'} reset`,
        lost > 0 && `${lost} ${lost === 1 ? 'input' : 'inputs'} after the checkpoint did not come back`,
      ].filter(Boolean)
      return plain(`restored the session from its checkpoint${not.length > 0 ? `; ${not.join(', ')}` : ''}`)
    }
    case 'unrecorded': // a gap is worth more than what is in it
      return {
        actor,
        text: `${int(entry.fields.count)} records of ${actor} are missing (${text(entry.fields.what)}): the disk was full`,
        tone: 'danger',
      }
    default:
      return null
  }
}

/** What becomes of a session that nobody uses, and why. */
function reaping(entry: JournalEntry): string {
  return `${entry.fields.action === 'evict' ? 'put to sleep' : 'ended'}${why(entry, 'why')}`
}

const SHAPES: Readonly<Record<string, string>> = {
  var: '',
  alias: 'alias ',
  func: 'function ',
  trap: 'trap ',
}
// The shell sets them by itself: they say nothing of who did what.
const BY_ITSELF = new Set(['OLDPWD', 'PWD', '_', 'FUNCNAME', 'LINENO', 'RANDOM', 'SECONDS'])
const SHAPES_SHOWN = 4

/** What a command left behind in the shell for those that follow it; not where it is and what runs in it. */
function shapedNames(keys: readonly string[], leftOut: number): string {
  const named = keys.flatMap((key) => {
    const [kind = '', ...rest] = key.split(':')
    const name = rest.join(':')
    return kind in SHAPES && name && !BY_ITSELF.has(name) ? `${SHAPES[kind]}${name}` : []
  })
  const more = named.length - SHAPES_SHOWN + leftOut
  if (named.length === 0) return ''
  return named.slice(0, SHAPES_SHOWN).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** What a judgement or an approval is about. */
function what({ fields }: JournalEntry): string {
  const kind = text(fields.kind)
  return text(fields.text) || (kind === 'line' ? 'a line that the shell did not show' : `${kind}`)
}

function why({ fields }: JournalEntry, field = 'reason'): string {
  const reason = text(fields[field])
  return reason && ` (${reason})`
}

function note({ fields }: JournalEntry): string {
  const said = text(fields.note)
  return said && `: “${said}”`
}

/** Everybody behind it but the actor itself. */
function originators(entry: JournalEntry, names: Names): Originator[] {
  const all = Array.isArray(entry.fields.contributors) ? (entry.fields.contributors as unknown[]) : []
  return all.flatMap((each) => {
    const one = each as Record<string, unknown>
    const actor = text(one.actor)
    if (!actor || actor === entry.actor) return []
    return {
      actor,
      name: text(one.name) || named(actor, names),
      kind: text(one.kind) as Originator['kind'],
      part: text(one.part) as Originator['part'],
      what: text(one.what),
      command: int(one.command),
    }
  })
}

type Words = (before: string, holder: string) => string

const MOVES: Record<string, Words> = {
  request: (_, holder) => `${holder} took the turn`,
  grant: (before, holder) => `${before} gave the turn to ${holder}`,
  'hand off': (before, holder) => `${before} handed the turn to ${holder}`,
  yield: (before, holder) => `${before} yielded the turn${holder && ` to ${holder}`}`,
  leave: (before, holder) => `${before} left, the turn is ${holder ? `${holder}'s` : 'free'}`,
  expire: (before, holder) => `${before}'s turn expired${holder && `, ${holder} has it`}`,
  revoke: (before, holder) => `the turn was taken from ${before}${holder && `, ${holder} has it`}`,
  seize: (before, holder) => `${holder} seized the turn from ${before}`,
}

function moveText(
  step: string,
  before: string,
  holder: string,
  reason: string,
): Pick<TimelineEvent, 'text' | 'tone'> {
  const words =
    MOVES[step] ?? ((from, to) => `the turn went from ${from || 'nobody'} to ${to || 'nobody'} (${step})`)
  const said = words(before || 'nobody', holder)
  return {
    text: reason ? `${said}: ${reason}` : said,
    tone: step === 'seize' || step === 'revoke' ? 'danger' : 'plain',
  }
}

function named(id: string, names: Names): string {
  return id ? (names[id] ?? id.slice(0, 8)) : 'the host'
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function float(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

function int(value: unknown): number {
  return typeof value === 'number' ? value : typeof value === 'bigint' ? Number(value) : 0
}

function list(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : []
}
