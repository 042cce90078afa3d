// Invented machines, sessions and people for the screens.

import type {
  Actor,
  ActorScore,
  CheckpointInfo,
  CommandRecord,
  Graph,
  Handoff,
  Machine,
  Movability,
  Process,
  SessionCard,
  SessionInfo,
  TurnInfo,
} from '../../src/hold/api'

export const NOW = Date.now() / 1000

export const MACHINE: Machine = {
  key: 'a1'.repeat(32),
  name: 'workbench',
  hostName: 'workbench.local',
  relays: ['https://relay.example:7800'],
  link: 'online',
  why: '',
  unreached: null,
  trouble: null,
  actor: 'mara-laptop',
  actorId: 'me000000000000000000000000',
  rights: [
    'end',
    'grant',
    'halt',
    'input',
    'observe',
    'resize',
    'seize',
    'signal',
    'turn.grant',
    'turn.request',
  ],
  reach: [],
  until: NOW + 30 * 86400,
}

export const FAR: Machine = {
  ...MACHINE,
  key: 'b2'.repeat(32),
  name: 'gpu-box',
  link: 'offline',
  why: 'The relay answers, the machine is not there.',
  unreached: 'down',
  rights: ['observe'],
  until: NOW + 2 * 86400,
}

export const ACTORS: Actor[] = [
  person('me000000000000000000000000', 'mara-laptop', 'device', 'cyan'),
  person('ag000000000000000000000000', 'claude', 'agent', 'magenta'),
  person('jo000000000000000000000000', 'jonas', 'human', 'green'),
  person('ci000000000000000000000000', 'nightly', 'service', 'yellow'),
]

function person(id: string, name: string, kind: Actor['kind'], colour: Actor['colour']): Actor {
  const key = new Uint8Array(32)
  return {
    id,
    name,
    kind,
    key,
    display: name,
    colour,
    uid: 1000,
    local: false,
    created_at: NOW - 9e5,
    revoked_at: null,
    revoked_by: '',
  }
}

export function session(name: string, change: Partial<SessionInfo> = {}): SessionInfo {
  return {
    id: `${name.replace(/[^a-z]/g, '')}${'0'.repeat(26)}`.slice(0, 26),
    name,
    state: 'working',
    level: 'contained',
    epoch: 1,
    user: 'mara',
    argv: ['bash'],
    cwd: '/home/mara/src/tide',
    size: { cols: 100, rows: 30 },
    created_at: NOW - 7900,
    pid: 4100,
    operators: 1,
    observers: 0,
    output_offset: 48213,
    held_from: 0,
    last_output_at: NOW - 2,
    title: '',
    waiting_line: '',
    shell: 'bash',
    last_command: null,
    ending: null,
    ended_at: null,
    labels: [],
    holder: '',
    waiting: [],
    lease: null,
    present: [],
    unrecorded: '',
    pruned_at: null,
    in_flight: null,
    acknowledged_at: null,
    acknowledged_by: '',
    residency: null,
    full_screen: false,
    held: '',
    state_since: null,
    last_known: null,
    superposition: 'pre-migration',
    migration: null,
    pinned: false,
    ungated: '',
    shaped_by: [],
    workspace: '',
    keeper_pid: 0,
    ...change,
  }
}

function card(machine: Machine, info: SessionInfo, lastLine: string): SessionCard {
  return { machine: machine.key, machineName: machine.name, link: machine.link, info, lastLine, seenAt: NOW }
}

export const CARDS: SessionCard[] = [
  card(
    MACHINE,
    session('build', { operators: 3, holder: 'claude', labels: ['ci', 'tide'] }),
    '[ 61%] Building CXX object src/CMakeFiles/tide.dir/solver/implicit_stepper.cpp.o',
  ),
  card(
    MACHINE,
    session('deploy', {
      state: 'input',
      waiting_line: 'Apply these 3 changes to production? [y/N] ',
      holder: 'nightly',
      labels: ['prod'],
    }),
    '',
  ),
  card(
    MACHINE,
    session('db', { state: 'secret', waiting_line: 'Password for role tide_admin: ', operators: 0 }),
    '',
  ),
  card(
    MACHINE,
    session('shell', { state: 'prompt', holder: 'mara-laptop', created_at: NOW - 400 }),
    'mara@workbench:~/src/tide$',
  ),
  card(
    MACHINE,
    session('agent-refactor', { state: 'halted', holder: 'mara-laptop', labels: ['tide'] }),
    '● Editing src/solver/grid.rs …',
  ),
  card(
    MACHINE,
    session('notes', { state: 'prompt', operators: 0, created_at: NOW - 3 * 86400 }),
    'mara@workbench:~/notes$',
  ),
  card(
    MACHINE,
    session('migrate', {
      state: 'ended',
      ending: { code: 1, signal: null, lost: null, cause: null, successor: '', checkpoint: '', moved_to: '' },
      ended_at: NOW - 600,
      pid: 0,
      operators: 0,
    }),
    'error: relation "tide_runs" already exists',
  ),
  card(
    FAR,
    session('train', { operators: 0, created_at: NOW - 9e4, labels: ['gpu'] }),
    'epoch 41/120  loss 0.0213  lr 3.0e-05  4.1 it/s',
  ),
  card(
    FAR,
    session('sweep', {
      operators: 0,
      created_at: NOW - 9e4,
      lease: { state: 'fenced', length_s: 30, left_s: 0, later_epoch: 0, why: '' },
    }),
    '',
  ),
]

export const CHECKPOINTS: CheckpointInfo[] = [
  checkpoint('ck-7', 300, 'before the upgrade', 12_400_000),
  checkpoint('ck-6', 7200, '', 11_900_000),
]

export const MOVABILITY: Movability = {
  movable: true,
  level: 'movable',
  processes: [],
  estimate: { bytes: 12_400_000, frozen_ms: 34 },
  findings: [],
  isa: 'x86_64',
  kernel: '6.8',
  needs: [],
  capture: null,
}

function checkpoint(id: string, ago: number, note: string, bytes: number): CheckpointInfo {
  return {
    id,
    session: session('build').id,
    name: 'build',
    epoch: 1,
    kind: 'memory',
    at: NOW - ago,
    actor: 'mara-laptop',
    note,
    bytes,
    stored_bytes: bytes / 4,
    frozen_ms: 33.6,
    total_ms: 410,
    bytes_new: bytes / 2,
    method: 'plain',
    copied_at_once: [],
    files: 0,
    file_bytes: 0,
    left_out: [],
    left_out_count: 0,
    journal_seq: 300,
  }
}

export const TURN_OTHER: TurnInfo = {
  holder: ACTORS[1]!.id,
  holder_name: 'claude',
  holder_kind: 'agent',
  since: NOW - 214,
  seized: false,
  blind: false,
  policy: 'ask-holder',
  queue: [],
  held_until: 0,
}

export const COMMANDS: CommandRecord[] = [
  command(1, 'git pull --rebase', 'mara-laptop', -2000, 1.2, 0),
  command(2, 'cmake -B build -DCMAKE_BUILD_TYPE=Release', 'mara-laptop', -1980, 8.4, 0),
  command(3, 'ctest --test-dir build -R stepper --output-on-failure', 'claude', -900, 41, 8),
  command(4, 'sed -i s/explicit_euler/implicit_euler/ src/solver/stepper.cpp', 'claude', -700, 0.02, 0),
  command(5, 'git diff --stat', 'jonas', -500, 0.07, 0),
  command(6, 'cmake --build build -j8', 'claude', -214, null, null),
]

function command(
  seq: number,
  text: string,
  actor: string,
  at: number,
  took: number | null,
  status: number | null,
): CommandRecord {
  return {
    seq,
    text,
    cwd: '/home/mara/src/tide',
    began_at: NOW + at,
    began_offset: seq * 1000,
    status,
    ended_at: took === null ? null : NOW + at + took,
    ended_offset: null,
    actor,
    authors: [actor],
  }
}

export const HANDOFF: Handoff = {
  since_seq: 120,
  through_seq: 300,
  since_at: NOW - 1500,
  commands: COMMANDS.slice(2),
  commands_left_out: 4,
  moves: [
    {
      at: NOW - 1400,
      step: 'hand off',
      before: 'mara-laptop',
      holder: 'claude',
      reason: 'fix the stepper test',
    },
    { at: NOW - 520, step: 'seize', before: 'claude', holder: 'jonas', reason: 'look first' },
    { at: NOW - 300, step: 'hand off', before: 'jonas', holder: 'claude', reason: '' },
  ],
  refused: 2,
  blind_bytes: 0,
  cwd: '/home/mara/src/tide',
  changes: [
    {
      kind: 'path',
      name: 'PATH',
      what: 'changed',
      before: '/usr/bin:/bin',
      after: '/home/mara/src/tide/tools:/usr/bin:/bin',
    },
    { kind: 'alias', name: 'make', what: 'added', before: '', after: 'ninja -C build' },
  ],
  changes_known: true,
  jobs: ['[1] 4410 python -m http.server 3000'],
  unsubmitted: '',
  unsubmitted_by: [],
  unsubmitted_known: true,
  halted: false,
}

function process(pid: number, ppid: number, argv: string[], change: Partial<Process> = {}): Process {
  return {
    pid,
    pid_inside: pid - 4000,
    ppid,
    pgid: pid,
    sid: 4100,
    name: argv[0]!.split('/').pop()!,
    argv,
    cwd: '/home/mara/src/tide',
    uid: 1000,
    state: 'S',
    started: NOW - 7900,
    cpu_seconds: 1,
    rss_bytes: 6.1e6,
    threads: 1,
    foreground: false,
    waits_for: 'child',
    files: [],
    pipes: [],
    sockets: [],
    command: 0,
    trigger: '',
    originators: [],
    ...change,
  }
}

const LISTEN = {
  fd: 3,
  inode: 1,
  family: 'inet',
  kind: 'tcp',
  state: 'listen',
  local: '0.0.0.0:3000',
  remote: '',
  peer: 0,
}

export const GRAPH: Graph = {
  root: 4100,
  processes: [
    process(4100, 1, ['bash']),
    process(4410, 4100, ['python', '-m', 'http.server', '3000'], {
      waits_for: 'event',
      rss_bytes: 2.1e7,
      started: NOW - 3300,
      sockets: [LISTEN],
    }),
    process(4502, 4100, ['cmake', '--build', 'build', '-j8'], { foreground: true, started: NOW - 214 }),
    process(4503, 4502, ['ninja', '-j8'], { foreground: true, waits_for: 'event', started: NOW - 214 }),
    process(4560, 4503, ['/usr/lib/gcc/cc1plus', '-O2', '-Isrc', 'src/solver/implicit_stepper.cpp'], {
      foreground: true,
      state: 'R',
      waits_for: '',
      rss_bytes: 4.2e8,
      started: NOW - 9,
    }),
    process(4562, 4503, ['/usr/lib/gcc/cc1plus', '-O2', '-Isrc', 'src/solver/grid.cpp'], {
      foreground: true,
      state: 'R',
      waits_for: '',
      rss_bytes: 3.1e8,
      started: NOW - 4,
    }),
  ],
  terminal: {
    name: '/dev/pts/3',
    size: { cols: 100, rows: 30 },
    foreground_pgid: 4502,
    canonical: true,
    echo: true,
    signals: true,
    unread_input: 0,
    unread_output: 0,
  },
  state: 'working',
  truncated: '',
}

const GREEN = '\x1b[32m'
const BLUE = '\x1b[1;34m'
const OFF = '\x1b[0m'
const PROMPT = `\x1b[1;32mmara@workbench${OFF}:${BLUE}~/src/tide${OFF}$ `

export const SCREEN: string = [
  `${PROMPT}git diff --stat`,
  ` src/solver/stepper.cpp | 14 ${GREEN}+++++++++${OFF}\x1b[31m-----${OFF}`,
  ` src/solver/stepper.h   |  2 ${GREEN}+${OFF}\x1b[31m-${OFF}`,
  ' 2 files changed, 10 insertions(+), 6 deletions(-)',
  `${PROMPT}cmake --build build -j8`,
  ...Array.from(
    { length: 22 },
    (_, n) =>
      `[${String(38 + n).padStart(3)}%] ${GREEN}Building CXX object src/CMakeFiles/tide.dir/solver/part_${n}.cpp.o${OFF}`,
  ),
  '┌──────────────┬─────────┐  \x1b[33mwarning:\x1b[0m unused parameter ‘dt’ [-Wunused-parameter]',
  '│ 潮 tide 🌊   │ ok      │',
  '└──────────────┴─────────┘',
].join('\r\n')

const totals = (actions: number, valid: number, success: number, clean: number) => ({
  actions,
  valid,
  measured: valid,
  success,
  clean,
  side_effects: valid - clean,
  points: success,
  scored: actions,
})

/** Of an agent that did something undeclared two days ago. */
export const SCORE: ActorScore = {
  actor: 'ag000000000000000000000000',
  name: 'claude',
  score: 0.92,
  recent: 0.958,
  recent_count: 20,
  totals: totals(40, 38, 36, 35),
  days: [
    { day: daysAgo(2), totals: totals(20, 18, 17, 15) },
    { day: daysAgo(0), totals: totals(20, 20, 19, 20) },
  ],
  unintended: [
    {
      at: NOW - 2 * 86400,
      session: CARDS[0]!.info.id,
      action: '5d0c1f2ab7e63490',
      command: './build.sh',
      effects: [{ kind: 'file_created', what: '/srv/api/core' }],
      count: 3,
    },
  ],
}

function daysAgo(days: number): string {
  return new Date((NOW - days * 86400) * 1000).toISOString().slice(0, 10)
}
