// Session states as text, in the words every interface uses. A state has a word and a tone; the tone picks a
// colour, the word is always there, so that nothing depends on colour alone.

type Tone = 'calm' | 'busy' | 'attention' | 'danger' | 'quiet'

/** As the host says it; `in_use`, for a full-screen program; and `fenced`, which the lease says. */
export type StateName =
  | 'working'
  | 'prompt'
  | 'input'
  | 'in_use'
  | 'secret'
  | 'stopped'
  | 'halted'
  | 'ended'
  | 'lost'
  | 'asleep'
  | 'fenced'
  | 'held'

interface StateText {
  readonly word: string
  readonly tone: Tone
  /** For tests and styles: the name of the state as a page shows it. */
  readonly mark: string
  /** One sentence for a tooltip. */
  readonly means: string
}

const WORDS: Record<StateName, StateText> = {
  working: { word: 'working', tone: 'busy', mark: 'working', means: 'something is running' },
  prompt: { word: 'at the prompt', tone: 'calm', mark: 'idle', means: 'the shell is waiting for a command' },
  input: {
    word: 'waiting for input',
    tone: 'attention',
    mark: 'waiting',
    means: 'a program is waiting for an answer',
  },
  in_use: {
    word: 'in use',
    tone: 'busy',
    mark: 'in-use',
    means: 'a full-screen program is open; it asks nothing',
  },
  secret: {
    word: 'waiting for a secret',
    tone: 'attention',
    mark: 'secret',
    means: 'a program is reading with echo off',
  },
  stopped: { word: 'stopped', tone: 'danger', mark: 'stopped', means: 'the foreground job is stopped' },
  halted: { word: 'halted', tone: 'danger', mark: 'halted', means: 'all its processes are frozen' },
  ended: { word: 'ended', tone: 'quiet', mark: 'ended', means: 'its main process has exited' },
  lost: {
    word: 'lost',
    tone: 'danger',
    mark: 'lost',
    means: 'it went with its host or its record broke; how it would have ended is not known',
  },
  asleep: {
    word: 'asleep',
    tone: 'quiet',
    mark: 'asleep',
    means: 'nothing of it runs; its checkpoint has it, and it can be restored',
  },
  held: {
    word: 'held',
    tone: 'attention',
    mark: 'held',
    means: 'a line waits for approval before it runs',
  },
  fenced: { word: 'fenced', tone: 'danger', mark: 'fenced', means: 'its host does not hold the lease' },
}

interface Lease {
  readonly state: string
}

/** Why a session is fenced, for its second line. */
export function fencedText(lease: Lease | null | undefined): string {
  return lease?.state === 'taken'
    ? 'another host has it; here it stays frozen for good'
    : 'frozen: its host does not hold the lease'
}

/** The state to show: a lease that is not held comes before what the kernel says. */
export function shownState(state: string, lease: Lease | null | undefined, fullScreen = false): StateName {
  if (!isOver(state) && lease && lease.state !== 'held') return 'fenced'
  if (state === 'input' && fullScreen) return 'in_use'
  return state in WORDS ? (state as StateName) : 'working'
}

/** The same for a list, where that a line waits for approval is worth more than what waits for it. */
export function listedState(info: {
  readonly state: string
  readonly lease: Lease | null
  readonly full_screen: boolean
  readonly held: string
}): StateName {
  const state = shownState(info.state, info.lease, info.full_screen)
  return info.held && (state === 'prompt' || state === 'working' || state === 'input') ? 'held' : state
}

/** Whether nothing of it runs under this id: it ended or, which is not the same, was lost. */
export function isOver(state: string): boolean {
  return state === 'ended' || state === 'lost'
}

/** Nothing of it runs: the same, or it is asleep. */
export function restsOrOver(state: string): boolean {
  return isOver(state) || state === 'asleep'
}

export function stateText(name: StateName): StateText {
  return WORDS[name]
}

/** Whether it waits for someone to type. */
export function needsInput(name: StateName): boolean {
  return name === 'input' || name === 'secret'
}

interface Ending {
  readonly code?: number | null
  readonly signal?: number | null
  readonly lost?: string | null
  readonly successor?: string
  readonly checkpoint?: string
  readonly moved_to?: string
}

/** It did not end: it was put into a checkpoint. */
export function isAsleep(ending: Ending | null | undefined): boolean {
  return (
    !!ending?.checkpoint &&
    !ending.moved_to &&
    typeof ending.code !== 'number' &&
    typeof ending.signal !== 'number' &&
    !ending.lost
  )
}

const SIGNALS: Record<number, string> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  6: 'SIGABRT',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  13: 'SIGPIPE',
  15: 'SIGTERM',
}

/** How it ended, as it truly did. */
export function endingText(ending: Ending | null | undefined): string {
  if (!ending) return 'ended'
  if (ending.moved_to) return `moved to ${ending.moved_to}`
  if (isAsleep(ending)) return 'asleep in its checkpoint'
  if (typeof ending.code === 'number') return `exited with status ${ending.code}`
  if (typeof ending.signal === 'number')
    return `killed by ${SIGNALS[ending.signal] ?? `signal ${ending.signal}`}`
  const follows = ending.successor ? `; followed by ${ending.successor}` : ''
  return `lost: ${ending.lost || 'exit status unknown'}${follows}`
}

interface InFlight {
  readonly command: { readonly text: string; readonly actor: string } | null
  readonly inputs: readonly { readonly actor: string; readonly text: string; readonly bytes: number }[]
  readonly unsubmitted: string
  readonly unsubmitted_by: readonly string[]
}

/** What was under way in a lost session; none of it is known to have taken effect. */
export function inFlightText(of: InFlight | null | undefined): string {
  if (!of) return 'What was in flight is not known.'
  if (of.command) return `In flight: ${of.command.text}${of.command.actor ? ` by ${of.command.actor}` : ''}`
  if (of.unsubmitted) return `Not submitted: ${of.unsubmitted} by ${of.unsubmitted_by.join(', ')}`
  const last = of.inputs.at(-1)
  if (last) return `Last input by ${last.actor}: ${last.text || `${last.bytes} secret bytes`}`
  return 'Nothing was in flight.'
}
