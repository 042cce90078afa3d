// The messages of docs/protocol.md that this client reads and writes. What a host says is checked here, once; a message
// that is not in the table is not for this client.

import { pack, unpackMap } from './msgpack'
import { violation } from './errors'
import { bool, bytes, int, float, list, maybe, or, record, text, textMap, texts, type Value } from './schema'
import * as s from './shapes'
import type { Size } from './values'

export const PROTOCOL_VERSION = 1

const answer = { id: int }

export const FROM_HOST = {
  welcome: record({
    version: int,
    host: text,
    daemon_pid: int,
    capabilities: or(texts, []),
    host_key: or(bytes, new Uint8Array(0)),
    challenge: or(bytes, new Uint8Array(0)),
    actor: or(text, ''),
  }),
  done: record(answer),
  failed: record({ ...answer, code: text, message: text, hint: or(text, ''), retryable: or(bool, false) }),
  shown: record({ ...answer, info: s.sessionInfo }),
  sessions: record({ ...answer, sessions: list(s.sessionInfo) }),
  graph_shown: record({ ...answer, graph: s.graph }),
  screen_shown: record({
    ...answer,
    text,
    cursor_col: int,
    cursor_row: int,
    size: s.size,
    title: text,
    offset: int,
  }),
  attached: record({ ...answer, channel: int, info: s.sessionInfo, offset: int, input_seq: int }),
  shared: record({ ...answer, channel: int, offset: int }),
  accepted: record({ ...answer, seq: int, offset: int, repeated: or(bool, false) }),
  actor_shown: record({ ...answer, actor: s.actor, envelopes: or(list(s.envelope), []) }),
  actors: record({ ...answer, actors: list(s.actor) }),
  turn_shown: record({ ...answer, turn: s.turnInfo, yours: bool }),
  halted: record({ ...answer, receipt: s.receipt }),
  caught_up: record({ ...answer, handoff: s.handoff }),
  journal_shown: record({ ...answer, session: text, records: list(bytes), more: bool, names: textMap }),
  blamed: record({ ...answer, lines: list(s.blameLine), total: int }),
  invite_made: record({ ...answer, invite: s.inviteInfo, code: bytes, link: text }),
  invites: record({ ...answer, invites: list(s.inviteInfo), names: textMap }),
  joined: record({ ...answer, chain: bytes, actor: text, host_name: text, relays: texts }),
  forwarded: record({ ...answer, number: int, address: text, pid: int, process: text }),
  forward_data: record({ session: text, number: int, data: bytes }),
  forward_room: record({ session: text, number: int, size: int }),
  forward_end: record({ session: text, number: int }),
  forward_closed: record({ session: text, number: int, code: text, message: or(text, '') }),
  output: record({ channel: int, offset: int, data: bytes }),
  resync: record({ channel: int, offset: int, size: s.size, skipped: int, data: bytes }),
  closed: record({ channel: int, ending: s.ending }),
  dismissed: record({ channel: int, code: or(text, '') }),
  answering: record({ channel: int, answers: bool }),
  state: record({
    session: text,
    name: text,
    state: s.sessionState,
    at: float,
    waiting_line: or(text, ''),
    ending: maybe(s.ending),
  }),
  operators: record({ session: text, operators: int, observers: int, size: s.size }),
  turn_event: record({
    session: text,
    step: text,
    at: float,
    actor: text,
    turn: s.turnInfo,
    yours: bool,
    reason: or(text, ''),
  }),
  turn_lost: record({ session: text, by: text, at: float, reason: text }),
  handed_over: record({ session: text, handoff: s.handoff }),
  dropped: record({ count: int }),
} as const

type Table = typeof FROM_HOST
export type FromHost = { [T in keyof Table]: { t: T } & Value<Table[T]> }[keyof Table]
export type Said<T extends keyof Table> = Extract<FromHost, { t: T }>

/** One message of a host, without its length. */
export function decodeFromHost(body: Uint8Array): FromHost {
  const fields = unpackMap(body)
  if (!Object.hasOwn(FROM_HOST, fields.t)) throw violation(`a host's ${fields.t} is not for this client`)
  const read = FROM_HOST[fields.t as keyof Table].read(fields, fields.t) as FromHost
  read.t = fields.t as never
  return read
}

// -- what this client says ---------------------------------------------------------------------

type OnSession = { session: string }

/** Requests by name, without `t` and `id`. What is left out takes the protocol's default. */
export interface Requests {
  run: { argv?: string[]; name?: string; cwd?: string; size?: Size; labels?: string[] }
  list: { ended?: boolean }
  show: OnSession
  graph: OnSession
  screen: OnSession & { scrollback?: boolean }
  attach: OnSession & {
    channel: number
    observe?: boolean
    since?: number
    size?: Size
    scrollback?: boolean
  }
  detach: { channel: number }
  share: OnSession & { channel: number; anew?: boolean }
  input: OnSession & { seq: number; data: Uint8Array; quiet?: boolean }
  submit: OnSession & { seq: number; text: string; enter?: boolean; secret?: boolean }
  keys: OnSession & { seq: number; keys: string[] }
  resize: OnSession & { size: Size; channel?: number }
  signal: OnSession & { signal: number }
  watch: { session?: string }
  forward: OnSession & { number: number; port: number }
  end: OnSession
  list_actors: Record<never, never>
  show_actor: { actor?: string }
  turn: OnSession
  request_turn: OnSession & { message?: string }
  withdraw_turn: OnSession
  grant_turn: OnSession & { to?: string }
  yield_turn: OnSession
  hand_off_turn: OnSession & { to: string; message?: string }
  revoke_turn: OnSession & { reason?: string }
  set_blind: OnSession & { blind: boolean }
  seize: OnSession & { halt?: boolean; only_actor?: string; reason?: string }
  halt: OnSession & { only_actor?: string; reason?: string }
  resume: OnSession
  catch_up: OnSession & { since_seq?: number; key?: string }
  journal: OnSession & { since_seq?: number; max_bytes?: number }
  blame: OnSession & { first?: number; last?: number }
  make_invite: {
    reach: string[]
    rights: string[]
    expires_s: number
    lasts_s: number
    uses?: number
    delegations?: number
  }
  list_invites: Record<never, never>
  revoke_invite: { invite: string; devices?: boolean }
  join: { name: string }
}

/** What each is answered with, when it is not refused. */
export interface Answers {
  run: 'shown'
  list: 'sessions'
  show: 'shown'
  graph: 'graph_shown'
  screen: 'screen_shown'
  attach: 'attached'
  detach: 'done'
  share: 'shared'
  input: 'accepted'
  submit: 'accepted'
  keys: 'accepted'
  resize: 'done'
  signal: 'done'
  watch: 'done'
  forward: 'forwarded'
  end: 'shown'
  list_actors: 'actors'
  show_actor: 'actor_shown'
  turn: 'turn_shown'
  request_turn: 'turn_shown'
  withdraw_turn: 'turn_shown'
  grant_turn: 'turn_shown'
  yield_turn: 'turn_shown'
  hand_off_turn: 'turn_shown'
  revoke_turn: 'turn_shown'
  set_blind: 'turn_shown'
  seize: 'halted'
  halt: 'halted'
  resume: 'done'
  catch_up: 'caught_up'
  journal: 'journal_shown'
  blame: 'blamed'
  make_invite: 'invite_made'
  list_invites: 'invites'
  revoke_invite: 'invites'
  join: 'joined'
}

export type Tag = keyof Requests

export function encodeRequest<T extends Tag>(tag: T, id: number, fields: Requests[T]): Uint8Array {
  return pack({ t: tag, id, ...fields })
}

/** What is said of an open connection to a port: not answered, and not signed, for its opening was. */
export type Carried =
  | { t: 'forward_data'; session: string; number: number; data: Uint8Array }
  | { t: 'forward_room'; session: string; number: number; size: number }
  | { t: 'forward_end'; session: string; number: number }
  | { t: 'forward_closed'; session: string; number: number; code: string; message: string }

export function encodeCarried(said: Carried): Uint8Array {
  return pack(said)
}

export function encodeHello(operator: string, client: string): Uint8Array {
  return pack({ t: 'hello', versions: [PROTOCOL_VERSION], operator, client, capabilities: [] })
}

// Nothing is different after these, but who looks. What is not in the list changes something, and is signed.
const LOOKING = new Set<string>(
  (
    'hello list show graph screen attach detach watch host list_actors show_actor list_envelopes turn catch_up journal ' +
    'verify prove blame list_invites list_devices join share get_relays'
  ).split(' '),
)

export function mustBeSigned(tag: string): boolean {
  return !LOOKING.has(tag)
}

/** Whether it goes through the channel of the session it is about; the rest is asked of the host. */
export function goesBySession(tag: string): boolean {
  return mustBeSigned(tag) || tag === 'attach' || tag === 'watch' || tag === 'share'
}
