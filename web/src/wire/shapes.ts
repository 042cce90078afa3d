// The values of docs/protocol.md as shapes; values.ts has the same as types for those who only read them. The compiler
// holds the two together.

import {
  bool,
  bytes,
  float,
  int,
  ints,
  list,
  maybe,
  named,
  nullable,
  or,
  record,
  text,
  texts,
  type Shape,
} from './schema'
import type * as v from './values'

export const size: Shape<v.Size> = record({ cols: int, rows: int })
export const ending: Shape<v.Ending> = record({ code: maybe(int), signal: maybe(int), lost: maybe(text) })

export const commandRecord: Shape<v.CommandRecord> = record({
  seq: int,
  text,
  cwd: text,
  began_at: float,
  began_offset: int,
  status: maybe(int),
  ended_at: maybe(float),
  ended_offset: maybe(int),
  actor: or(text, ''),
  authors: or(texts, []),
})

const lease: Shape<v.LeaseInfo> = record({
  state: text,
  length_s: float,
  left_s: float,
  later_epoch: or(int, 0),
  why: or(text, ''),
})

export const sessionState = named<v.SessionState>()

export const attendee: Shape<v.Attendee> = record({
  actor: text,
  name: text,
  client: text,
  observe: bool,
  since: float,
})

export const sessionInfo: Shape<v.SessionInfo> = record({
  id: text,
  name: text,
  state: sessionState,
  level: named<v.Level>(),
  epoch: int,
  user: text,
  argv: texts,
  cwd: text,
  size,
  created_at: float,
  pid: int,
  operators: int,
  observers: int,
  output_offset: int,
  held_from: int,
  last_output_at: maybe(float),
  title: or(text, ''),
  waiting_line: or(text, ''),
  shell: or(text, ''),
  last_command: maybe(commandRecord),
  ending: maybe(ending),
  ended_at: maybe(float),
  labels: or(texts, []),
  holder: or(text, ''),
  waiting: or(texts, []),
  lease: maybe(lease),
  present: or(list(attendee), []),
})

export const actor: Shape<v.Actor> = record({
  id: text,
  name: text,
  kind: named<v.ActorKind>(),
  key: bytes,
  display: text,
  colour: named<v.Colour>(),
  uid: int,
  local: bool,
  created_at: float,
  revoked_at: maybe(float),
})

export const envelope: Shape<v.Envelope> = record({
  actor: text,
  scope: record({ kind: or(named<'all' | 'label' | 'session'>(), 'all'), name: or(text, '') }),
  rights: texts,
  expires_at: maybe(float),
  inputs_per_s: maybe(float),
  bytes_per_s: maybe(float),
  granted_by: or(text, ''),
  granted_at: or(float, 0),
})

export const turnInfo: Shape<v.TurnInfo> = record({
  holder: or(text, ''),
  holder_name: or(text, ''),
  holder_kind: or(text, ''),
  since: or(float, 0),
  seized: or(bool, false),
  blind: or(bool, false),
  policy: or(text, ''),
  queue: or(
    list<v.WaitingInfo>(record({ actor: text, name: text, since: float, message: or(text, '') })),
    [],
  ),
})

export const receipt: Shape<v.Receipt> = record({
  at: float,
  before: text,
  scope: text,
  frozen: bool,
  tasks: or(int, 0),
  seconds: or(float, 0),
  running: or(ints, []),
  journal_seq: or(int, 0),
  last_input_by: or(text, ''),
  last_input_at: maybe(float),
  output_offset: or(int, 0),
  caveat: or(text, ''),
  unrecorded: or(text, ''),
})

const turnMove: Shape<v.TurnMove> = record({
  at: float,
  step: text,
  before: text,
  holder: text,
  reason: or(text, ''),
})
const change: Shape<v.Change> = record({
  kind: text,
  name: text,
  what: text,
  before: or(text, ''),
  after: or(text, ''),
})

export const handoff: Shape<v.Handoff> = record({
  since_seq: int,
  through_seq: int,
  since_at: nullable(float),
  commands: list(commandRecord),
  commands_left_out: int,
  moves: list(turnMove),
  refused: int,
  blind_bytes: int,
  cwd: text,
  changes: list(change),
  changes_known: bool,
  jobs: texts,
  unsubmitted: or(text, ''),
  unsubmitted_by: or(texts, []),
  unsubmitted_known: or(bool, true),
  halted: or(bool, false),
})

export const blameLine: Shape<v.BlameLine> = record({
  number: int,
  text,
  actor: text,
  command: nullable(int),
  command_text: text,
  at: nullable(float),
})

export const inviteInfo: Shape<v.InviteInfo> = record({
  invite: text,
  reach: text,
  rights: texts,
  created_by: text,
  created_at: float,
  expires_at: float,
  lasts_s: float,
  uses: int,
  joined: texts,
  delegations: or(int, 0),
  inputs_per_s: maybe(float),
  bytes_per_s: maybe(float),
  wrong_codes: or(int, 0),
  revoked_at: maybe(float),
})

const lock: Shape<v.Lock> = record({ kind: text, mode: text, start: int, end: nullable(int) })
const openFile: Shape<v.OpenFile> = record({
  fd: int,
  path: text,
  kind: text,
  mode: text,
  offset: int,
  locks: or(list(lock), []),
})
const pipe: Shape<v.Pipe> = record({ fd: int, inode: int, end: text, path: or(text, '') })
const socket: Shape<v.Socket> = record({
  fd: int,
  inode: int,
  family: text,
  kind: text,
  state: text,
  local: or(text, ''),
  remote: or(text, ''),
  peer: or(int, 0),
})

const process: Shape<v.Process> = record({
  pid: int,
  pid_inside: int,
  ppid: int,
  pgid: int,
  sid: int,
  name: text,
  argv: texts,
  cwd: text,
  uid: int,
  state: text,
  started: float,
  cpu_seconds: float,
  rss_bytes: int,
  threads: int,
  foreground: bool,
  waits_for: or(text, ''),
  files: or(list(openFile), []),
  pipes: or(list(pipe), []),
  sockets: or(list(socket), []),
})

const terminal: Shape<v.Terminal> = record({
  name: text,
  size,
  foreground_pgid: int,
  canonical: bool,
  echo: bool,
  signals: bool,
  unread_input: int,
  unread_output: int,
})

export const graph: Shape<v.Graph> = record({
  root: int,
  processes: list(process),
  terminal,
  state: sessionState,
  truncated: or(text, ''),
})
