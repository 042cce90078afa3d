// A live graph as rows of a tree, with the ports that somebody listens on. Pure.

import type { Graph, Process } from '../../hold/api'

export interface ProcessRow {
  readonly process: Process
  readonly depth: number
  readonly ports: readonly string[] // `3000`, `127.0.0.1:8080`
  readonly program: string // without its directory
  readonly args: string
  readonly text: string // the whole command line
}

const INIT = 'hold-init' // the parent of a session's main process: nothing that anybody started
const OUR_SCRIPT = /\/holdfast\/shells\/(bash\.sh|fish\.fish)'?$/ // by which a shell reports its commands

/** `asked`: what the session was asked to run; its main process may have been started with options of ours besides. */
export function processRows(graph: Graph, asked: readonly string[] = []): ProcessRow[] {
  const known = new Set(graph.processes.map((one) => one.pid))
  const children = new Map<number, Process[]>()
  const tops: Process[] = []
  for (const process of graph.processes) {
    // A process whose parent is gone or hidden is listed at the top level: it must not vanish.
    if (process.pid === graph.root || !known.has(process.ppid)) tops.push(process)
    else children.set(process.ppid, [...(children.get(process.ppid) ?? []), process])
  }
  const rows: ProcessRow[] = []
  let main: Process | undefined
  const walk = (process: Process, depth: number): void => {
    const ours = process.pid === graph.root && process.name === INIT
    const own = (children.get(process.pid) ?? []).sort(byStart)
    if (ours) main = own[0]
    else {
      const argv = process === main && sameProgram(process.argv, asked) ? asked : process.argv
      rows.push({ process, depth, ports: portsOf(process), ...commandOf(argv, process.name) })
    }
    for (const child of own) walk(child, ours ? depth : depth + 1)
  }
  for (const top of tops.sort(
    (one, other) => Number(other.pid === graph.root) - Number(one.pid === graph.root),
  )) {
    walk(top, 0)
  }
  return rows
}

function byStart(one: Process, other: Process): number {
  return one.started - other.started || one.pid - other.pid
}

function portsOf(process: Process): string[] {
  const listening = process.sockets.filter((socket) => socket.state === 'listen' && socket.kind === 'tcp')
  return [...new Set(listening.map((socket) => shortPort(socket.local)))]
}

function shortPort(local: string): string {
  const cut = local.lastIndexOf(':')
  const host = local.slice(0, cut)
  const port = local.slice(cut + 1)
  return ['0.0.0.0', '::', '[::]', '*', ''].includes(host) ? `:${port}` : local
}

/** The number in one of these. */
export function portNumber(port: string): number {
  return Number(port.slice(port.lastIndexOf(':') + 1))
}

function commandOf(argv: readonly string[], name: string): Pick<ProcessRow, 'program' | 'args' | 'text'> {
  if (argv.length === 0) return { program: `[${name}]`, args: '', text: `[${name}]` }
  const [first = '', ...rest] = argv.filter(
    (word, at) => at === 0 || (!OUR_SCRIPT.test(word) && !OUR_SCRIPT.test(argv[at + 1] ?? '')),
  )
  const args = rest.join(' ')
  return { program: programName(first), args, text: `${first} ${args}`.trim() }
}

function programName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function sameProgram(one: readonly string[], other: readonly string[]): boolean {
  return other.length > 0 && programName(one[0] ?? '') === programName(other[0]!)
}

const DOES: Record<string, string> = {
  tty: 'reading the terminal',
  output: 'waiting for the terminal to take output',
  pipe: 'waiting on a pipe',
  socket: 'waiting on a socket',
  child: 'waiting for a child',
  file: 'waiting on a file',
  timer: 'sleeping',
  futex: 'waiting on a lock',
  signal: 'waiting for a signal',
  event: 'waiting for events',
}

export function doing(process: Process): string {
  if (process.state === 'T' || process.state === 't') return 'stopped'
  if (process.state === 'Z') return 'zombie'
  if (process.state === 'R') return 'running'
  return DOES[process.waits_for] ?? 'sleeping'
}
