// The interface between the screens and the client: what a page can know about machines and sessions, and what it can
// do with them. Types, and the named roles. The objects behind them are made by `openHold` in hold.ts; tests of screens make their own.
//
// Values of the protocol (SessionInfo, TurnInfo, Graph, ...) keep the field names of docs/protocol.md.
// Text in them comes from programs and from other actors: show it as text, never as markup.

import type { ReadonlySignal } from '@preact/signals-core'
import type {
  Actor,
  ActorScore,
  ApprovalInfo,
  BlameLine,
  CheckpointInfo,
  Ending,
  Graph,
  Handoff,
  Movability,
  Receipt,
  SessionInfo,
  Size,
  TurnInfo,
  WaitingInfo,
} from '../wire/generated/values'
import type { JournalEntry } from '../wire/journal'
import type { HostMessage, RequestFields } from '../wire/messages'
import type { PortForwarder } from './port-forward'

export type * from '../wire/generated/values'
export { ROLES } from '../wire/generated/values'
export type { JournalEntry } from '../wire/journal'

/** The state of the connection to a relay, or through it to a machine. */
export type Link = 'connecting' | 'online' | 'offline'

/** Why a machine is not reached: no relay is; the relay says that it is not connected; it is connected and does not answer. */
export type Unreached = 'relay' | 'down' | 'silent'

/** The part of an error that can be shown; a HoldError of wire/errors.ts has it. */
export interface Trouble {
  code: string // of docs/errors.md, or one of the page's own: see there
  message: string // what happened
  hint: string // what to do next; may be empty
  retryable: boolean // the same may succeed later
}

export interface Machine {
  key: string // the host's Ed25519 key, 64 hexadecimal digits: what `open` and `forget` take
  name: string // what this device calls it
  hostName: string // what it calls itself
  relays: string[] // where it can be reached, as URLs
  link: Link
  why: string // for people, when it is not online: what was tried last and what came of it
  unreached: Unreached | null // null while it is online, or not tried yet
  trouble: Trouble | null // something that does not pass by itself: revoked, expired, ...
  actor: string // what this device is called there
  actorId: string
  rights: string[] // what its grant allows, sorted; [] until known
  reach: string[] // where, as steps; [] is everywhere
  until: number // seconds since 1970 from which the grant counts no more
}

/** Nobody uses it, and its host is about to do something about it. */
export type Reaping = Pick<HostMessage<'reap_notice'>, 'action' | 'why' | 'due_at'>

/** What was asked in a session, as whoever answers read it. */
export type Asked = Pick<SessionInfo, 'id' | 'state' | 'waiting_line' | 'last_command'>

/** How far something is that takes a while: `total` is 0 when it is not known. */
export type Progress = Pick<HostMessage<'progress'>, 'work' | 'phase' | 'done' | 'total'> & {
  seenAt: number // seconds since 1970 at which it came, by this device's clock
}

export interface SessionCard {
  machine: string // Machine.key
  machineName: string
  link: Link // of that machine: when it is not online, all else is the last that was known
  info: SessionInfo
  lastLine: string // the last line of its screen that is not blank; '' when not known
  seenAt: number // seconds since 1970 at which `info` was true, by this device's clock
  above?: readonly string[] // the lines over the one that its cursor is on, the nearest last; [] when not known
  asking?: readonly WaitingInfo[] // who waits for the turn, with what they say; [] when not known
  reaping?: Reaping | null
  progress?: Progress | null
}

/** Something that a policy holds until enough others approve. */
export interface ApprovalCard {
  machine: string // Machine.key
  machineName: string
  link: Link // of that machine
  info: ApprovalInfo
  by: string // who took the last step, by name; '' when not known
  note: string // what was said with it
}

/** What an invite link contains, before anything is sent. */
export interface InvitePreview {
  relay: string // host and port
  hostKey: string
  known: Machine | null // this machine is known here already
}

export interface Joined {
  machine: string // Machine.key
  actor: string
  rights: string[]
  reach: string[]
  until: number
  session: string | null // id, when the grant is about one session: go there
}

export interface JoinFailure {
  ok: false
  reason: 'bad_link' | 'wrong_relay' | 'expired' | 'used' | 'invalid' | 'unreachable' | 'other'
  trouble: Trouble
}

export type JoinOutcome = { ok: true; joined: Joined } | JoinFailure

/** Who invites to what. */
export type Invitation = Omit<HostMessage<'invite_seen'>, 't' | 'id'>

export interface Hold {
  readonly machines: ReadonlySignal<Machine[]>
  /** Sessions of all machines, live ones by their events, ended ones as last reported. */
  readonly sessions: ReadonlySignal<SessionCard[]>
  /** False until the device store was read: show nothing rather than the empty state. */
  readonly ready: ReadonlySignal<boolean>
  /** Which keys are used: 'webcrypto' (cannot be exported) or 'noble' (page is not a secure context). */
  readonly keys: 'webcrypto' | 'noble'
  /** Looks at a link without dialling. Throws HoldError bad_link. */
  preview(link: string): InvitePreview
  /** Asks the machine what a link is for. Uses nothing up. Never throws. */
  see(link: string): Promise<{ ok: true; seen: Invitation } | JoinFailure>
  /** Joins a machine by its link, as a device called `name` (letters, digits, . _ -). Never throws. */
  join(link: string, name: string): Promise<JoinOutcome>
  /** A view on one session, with a channel of its own to the host; close it when its page closes. */
  open(machine: string, session: string, options?: OpenOptions): SessionHandle
  /** Start a session on a machine. Not repeated by itself after a lost connection. */
  run(machine: string, options: RequestFields<'run'>): Promise<SessionInfo>
  /** Acknowledge that a session was lost: it is then listed with those that ended. */
  acknowledge(machine: string, session: string): Promise<void>
  /** Type an answer and Enter into a session that is not open here; of a secret, what nobody sees. Sent once, and only while it
      asks the same; the turn is taken for it, and given up again. Fails with `question_over` or `turn_held`: then nothing was sent. */
  answer(machine: string, asked: Asked, text: string): Promise<void>
  /** Give the turn, which this device holds, to an actor that waits for it, by name or id. */
  giveTurn(machine: string, session: string, to: string): Promise<void>
  /** Thaw a session that was halted. */
  resume(machine: string, session: string): Promise<void>
  /** What waits for approval on all machines, and what was decided lately. */
  readonly approvals: ReadonlySignal<ApprovalCard[]>
  /** Ask a machine for its approvals now: what changed in a session since something was asked comes with no event. */
  lookAtApprovals(machine: string): Promise<void>
  /** `seen`: the version that was read. If it is another by now, this fails with `approval_changed`. */
  approve(machine: string, approval: string, note: string, seen: string): Promise<ApprovalInfo>
  /** Refused whatever changed; `seen` is for the record, '' where nothing was read. */
  deny(machine: string, approval: string, note: string, seen: string): Promise<ApprovalInfo>
  /** The actors known on a machine: names, kinds, colours. */
  actors(machine: string): Promise<Actor[]>
  /** An actor's record on a machine, by name or id, of the last so many days. */
  score(machine: string, actor: string, days: number): Promise<ActorScore>
  /** Ask now instead of at the next event or retry: the user asked for it, or the page became visible. */
  refresh(): void
  forget(machine: string): Promise<void>
  rename(machine: string, name: string): Promise<void>
  close(): void
}

export interface OpenOptions {
  observe?: boolean // never type, never size; needs only the right to observe
  size?: Size // of this page's terminal; it becomes the canonical one if nobody else holds the turn. Leave out on phones
  scrollback?: boolean // the first screen brings the lines above it; default true
}

/** The state of a handle. Only `ended`, `refused` and `closed` are final. */
export type LinkState =
  | { at: 'connecting'; why: string; since: number } // first time
  | { at: 'online' }
  | {
      at: 'offline' // and trying again
      why: string
      unreached: Unreached
      since: number
      retryAt: number | null
      trouble: Trouble | null
    }
  | { at: 'fenced'; trouble: Trouble } // the host lost the session's lease; tried again at times
  | { at: 'ended'; ending: Ending | null }
  | { at: 'refused'; trouble: Trouble } // revoked, expired, not permitted, no such session
  | { at: 'closed' } // by close()

export interface TurnState {
  turn: TurnInfo
  yours: boolean
  waiting: boolean // this actor is in the queue
}

export type Presence = Pick<SessionInfo, 'operators' | 'observers' | 'size'>
export type Accepted = Pick<HostMessage<'accepted'>, 'seq' | 'offset' | 'repeated'>

/** Something that happened once, for notices. */
export type Notice =
  | { kind: 'turn'; step: string; actor: string; reason: string; yours: boolean; at: number }
  | { kind: 'turn_lost'; by: string; reason: string; at: number }
  | { kind: 'handed_over'; handoff: Handoff }
  | { kind: 'refused'; trouble: Trouble; seq: number } // an input was refused, nothing of it was typed
  | { kind: 'input_unknown'; bytes: number; trouble: Trouble } // may or may not have been typed; never resent
  | { kind: 'not_sent'; bytes: number } // typed while offline, and not to be sent late; never typed
  | { kind: 'skipped'; bytes: number } // output that was never sent here; the screen is whole

export type OutputKind = 'live' | 'resync'
/**
 * `resync`: reset the terminal, give it `size`, then write the bytes: they paint the whole view.
 * `live`: write the bytes. `offset` is that of the first byte (live), or the one the view is true at (resync).
 * A resync after which the scrollback may stay has `keepScrollback`: then clear the screen only.
 * What it returns, if anything, is awaited before more is delivered: that is the back-pressure. A reader that falls far behind
 * is moved on with a resync instead of being sent everything.
 */
export type OutputListener = (
  bytes: Uint8Array,
  kind: OutputKind,
  size: Size,
  more: { offset: number; keepScrollback: boolean },
) => void | Promise<void>

export interface JournalPiece {
  entries: JournalEntry[]
  more: boolean
  names: Record<string, string> // of actors, by id
}

export type ScreenText = Omit<HostMessage<'screen_shown'>, 't' | 'id'>
/** Without a reach, for this session. */
export type InviteAsk = Omit<RequestFields<'make_invite'>, 'reach'> & { reach?: string[] }
export type Restored = Pick<HostMessage<'restored'>, 'info' | 'report'>
export type Revived = Omit<HostMessage<'revived'>, 't' | 'id'>
export type InviteMade = Pick<HostMessage<'invite_made'>, 'link' | 'invite'>

export interface SessionHandle {
  readonly machine: string
  readonly session: string // as it was asked for; info has the id
  readonly info: ReadonlySignal<SessionInfo | null>
  readonly turn: ReadonlySignal<TurnState | null>
  readonly operators: ReadonlySignal<Presence | null>
  readonly actors: ReadonlySignal<Actor[]> // known on the machine; [] until loaded
  readonly me: ReadonlySignal<Actor | null> // this device there
  readonly rights: ReadonlySignal<string[] | null> // what this device may do here; null: not loaded yet. The host decides at each input
  readonly observing: ReadonlySignal<boolean> // attached to watch only: by choice, or because more is not permitted
  readonly link: ReadonlySignal<LinkState>
  readonly inputPending: ReadonlySignal<number> // bytes sent or kept and not yet accepted
  readonly rtt: ReadonlySignal<number | null> // ms, smoothed: input to accepted, or ALIVE
  readonly answers: ReadonlySignal<boolean> // this terminal is to answer a program's queries; otherwise drop its answers

  onOutput(listener: OutputListener): () => void
  onNotice(listener: (notice: Notice) => void): () => void
  /** Each round trip as it was measured, in ms; `rtt` is for showing. */
  onRoundTrip(listener: (ms: number) => void): () => void
  /** The page cannot keep up, or lost its position: start again with a resync. */
  resync(): void

  /** Key presses, as a terminal sends them. Returns at once; a refusal is a notice. Kept and sent once while offline, if
      that is not long. */
  input(bytes: Uint8Array): void
  /** A secret and Enter. The host types it only where a program reads without echo at that moment; it is not sent again after
      the connection was lost. */
  secret(text: string): Promise<Accepted>
  /** Text as one paste: the host brackets it if the program asked for that. Large ones go in pieces, no faster than taken. */
  paste(text: string, progress?: (sent: number, total: number) => void): Promise<void>
  submit(text: string, enter?: boolean): Promise<Accepted>
  /** This page's terminal size: becomes canonical while this actor holds the turn, or nobody does. */
  resize(size: Size): void

  requestTurn(message?: string): Promise<TurnState>
  withdrawTurn(): Promise<TurnState>
  grantTurn(to?: string): Promise<TurnState>
  yieldTurn(): Promise<TurnState>
  handOffTurn(to: string): Promise<TurnState>
  setBlind(blind: boolean): Promise<TurnState>
  seize(fields: Omit<RequestFields<'seize'>, 'session'>): Promise<Receipt>
  halt(): Promise<Receipt>
  resume(): Promise<void>

  catchUp(sinceSeq?: number): Promise<Handoff>
  journal(sinceSeq?: number, maxBytes?: number): Promise<JournalPiece>
  blame(first?: number, last?: number): Promise<{ lines: BlameLine[]; total: number }>
  graph(): Promise<Graph>
  screen(scrollback?: boolean): Promise<ScreenText>
  refresh(): Promise<SessionInfo>
  /** Connections to ports of its programs; close it when they are no longer needed. */
  ports(): Promise<PortForwarder>
  /** Its checkpoints, newest first. */
  checkpoints(): Promise<CheckpointInfo[]>
  /** What a checkpoint would meet now, in each of its processes. Nothing is touched. */
  canMove(): Promise<Movability>
  /** Its continuity certificate, as JSON; also of a session that is over. */
  certificate(): Promise<string>
  /** Write its processes to disk. With `end` it is asleep afterwards. Not repeated after a lost connection. */
  checkpoint(note: string, end: boolean): Promise<CheckpointInfo>
  /** Bring it back from its last checkpoint, under its id. This handle stays over: open another one. */
  restore(): Promise<Restored>
  /** Start a session that follows this lost one. */
  revive(): Promise<Revived>
  /** Keep it from being reaped, or no longer. */
  pin(pinned: boolean): Promise<SessionInfo>
  end(): Promise<SessionInfo>
  invite(ask: InviteAsk): Promise<InviteMade>

  close(): void
}
