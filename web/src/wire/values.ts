// The values that messages of docs/protocol.md carry, as types. Field names are the protocol's own, so that what a
// page shows can be looked up there. Nothing here checks anything: messages are checked where they are decoded.

export interface Size {
  cols: number
  rows: number
}

export interface Ending {
  code: number | null
  signal: number | null
  lost: string | null
}

export type SessionState = 'working' | 'prompt' | 'input' | 'secret' | 'stopped' | 'halted' | 'ended'
export type Level = 'plain' | 'contained' | 'movable'

export interface CommandRecord {
  seq: number
  text: string
  cwd: string
  began_at: number
  began_offset: number
  status: number | null
  ended_at: number | null
  ended_offset: number | null
  actor: string
  authors: string[]
}

export interface LeaseInfo {
  state: string
  length_s: number
  left_s: number
  later_epoch: number
  why: string
}

export interface SessionInfo {
  id: string
  name: string
  state: SessionState
  level: Level
  epoch: number
  user: string
  argv: string[]
  cwd: string
  size: Size
  created_at: number
  pid: number
  operators: number
  observers: number
  output_offset: number
  held_from: number
  last_output_at: number | null
  title: string
  waiting_line: string
  shell: string
  last_command: CommandRecord | null
  ending: Ending | null
  ended_at: number | null
  labels: string[]
  holder: string
  waiting: string[]
  lease: LeaseInfo | null
  present: Attendee[] // of the operators, the first that came
}

/** An operator that is attached now. */
export interface Attendee {
  actor: string // id
  name: string
  client: string
  observe: boolean
  since: number
}

export type ActorKind = 'human' | 'agent' | 'service' | 'device'
export type Colour = 'black' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan' | 'white'

export interface Actor {
  id: string
  name: string
  kind: ActorKind
  key: Uint8Array
  display: string
  colour: Colour
  uid: number
  local: boolean
  created_at: number
  revoked_at: number | null
}

export interface Envelope {
  actor: string
  scope: { kind: 'all' | 'label' | 'session'; name: string }
  rights: string[]
  expires_at: number | null
  inputs_per_s: number | null
  bytes_per_s: number | null
  granted_by: string
  granted_at: number
}

export interface WaitingInfo {
  actor: string
  name: string
  since: number
  message: string
}

export interface TurnInfo {
  holder: string
  holder_name: string
  holder_kind: string
  since: number
  seized: boolean
  blind: boolean
  policy: string
  queue: WaitingInfo[]
}

export interface Receipt {
  at: number
  before: string
  scope: string
  frozen: boolean
  tasks: number
  seconds: number
  running: number[]
  journal_seq: number
  last_input_by: string
  last_input_at: number | null
  output_offset: number
  caveat: string
  unrecorded: string
}

export interface TurnMove {
  at: number
  step: string
  before: string
  holder: string
  reason: string
}

export interface Change {
  kind: string
  name: string
  what: string
  before: string
  after: string
}

// Text in it comes from programs and actors. Show it as text, never as markup.
export interface Handoff {
  since_seq: number
  through_seq: number
  since_at: number | null
  commands: CommandRecord[]
  commands_left_out: number
  moves: TurnMove[]
  refused: number
  blind_bytes: number
  cwd: string
  changes: Change[]
  changes_known: boolean
  jobs: string[]
  unsubmitted: string
  unsubmitted_by: string[]
  unsubmitted_known: boolean
  halted: boolean
}

export interface BlameLine {
  number: number
  text: string
  actor: string
  command: number | null
  command_text: string
  at: number | null
}

export interface InviteInfo {
  invite: string
  reach: string
  rights: string[]
  created_by: string
  created_at: number
  expires_at: number
  lasts_s: number
  uses: number
  joined: string[]
  delegations: number
  inputs_per_s: number | null
  bytes_per_s: number | null
  wrong_codes: number
  revoked_at: number | null
}

export interface Lock {
  kind: string
  mode: string
  start: number
  end: number | null
}

export interface OpenFile {
  fd: number
  path: string
  kind: string
  mode: string
  offset: number
  locks: Lock[]
}

export interface Pipe {
  fd: number
  inode: number
  end: string
  path: string
}

export interface Socket {
  fd: number
  inode: number
  family: string
  kind: string
  state: string
  local: string
  remote: string
  peer: number
}

export interface Process {
  pid: number
  pid_inside: number
  ppid: number
  pgid: number
  sid: number
  name: string
  argv: string[]
  cwd: string
  uid: number
  state: string
  started: number
  cpu_seconds: number
  rss_bytes: number
  threads: number
  foreground: boolean
  waits_for: string
  files: OpenFile[]
  pipes: Pipe[]
  sockets: Socket[]
}

export interface Terminal {
  name: string
  size: Size
  foreground_pgid: number
  canonical: boolean
  echo: boolean
  signals: boolean
  unread_input: number
  unread_output: number
}

export interface Graph {
  root: number
  processes: Process[]
  terminal: Terminal
  state: SessionState
  truncated: string
}
