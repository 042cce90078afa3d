// Session states as text, in the words every interface uses. A state has a word and a tone; the tone picks a
// colour, the word is always there, so that nothing depends on colour alone.

type Tone = 'calm' | 'busy' | 'attention' | 'danger' | 'quiet'

/** As the host says it, and `fenced`, which the lease says. */
type StateName = 'working' | 'prompt' | 'input' | 'secret' | 'stopped' | 'halted' | 'ended' | 'fenced'

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
  secret: {
    word: 'waiting for a secret',
    tone: 'attention',
    mark: 'secret',
    means: 'a program is reading with echo off',
  },
  stopped: { word: 'stopped', tone: 'danger', mark: 'stopped', means: 'the foreground job is stopped' },
  halted: { word: 'halted', tone: 'danger', mark: 'halted', means: 'all its processes are frozen' },
  ended: { word: 'ended', tone: 'quiet', mark: 'ended', means: 'its main process has exited' },
  fenced: { word: 'fenced', tone: 'danger', mark: 'fenced', means: 'its host does not hold the lease' },
}

interface Lease {
  readonly state: string
}

/** The state to show: a lease that is not held comes before what the kernel says. */
export function shownState(state: string, lease: Lease | null | undefined): StateName {
  if (state !== 'ended' && lease && lease.state !== 'held') return 'fenced'
  return state in WORDS ? (state as StateName) : 'working'
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
  if (typeof ending.code === 'number') return `exited with status ${ending.code}`
  if (typeof ending.signal === 'number')
    return `killed by ${SIGNALS[ending.signal] ?? `signal ${ending.signal}`}`
  return `lost: ${ending.lost || 'exit status unknown'}`
}
