// The hue of an actor. The host names one of eight colours, as terminals know them; where only the id is known, the
// name is chosen the way the hosts choose it. Here each name stands for a hue that is no status: red is for danger only.
// Two actors may have one colour: then whoever joined later has another hue here, as long as there are hues.

const GIVEN = ['red', 'green', 'yellow', 'blue', 'magenta', 'cyan'] as const

const HUES: Record<string, string> = {
  red: 'rose',
  green: 'olive',
  yellow: 'cocoa',
  blue: 'indigo',
  magenta: 'violet',
  cyan: 'teal',
  black: 'plum',
  white: 'slate',
}

export function defaultColour(actor: string): string {
  let sum = 0
  for (const byte of new TextEncoder().encode(actor)) sum += byte
  return GIVEN[sum % GIVEN.length] ?? 'blue'
}

export interface Hue {
  readonly '--hue': string
  readonly '--on-hue': string // readable on it
}

interface Coloured {
  readonly id: string
  readonly colour: string
  readonly created_at: number
}

const TEN = [...Object.values(HUES), 'lilac', 'coal']
const given = new Map<string, string>() // by actor; kept while the page is open, so that nobody changes colour

/** The actors of a machine, by whom their hues are told apart. */
export function learnHues(actors: readonly Coloured[]): void {
  const taken = new Set(actors.flatMap(({ id }) => given.get(id) ?? []))
  for (const { id, colour } of [...actors].sort((one, other) => one.created_at - other.created_at)) {
    if (given.has(id)) continue
    const own = named(colour, id)
    const hue = taken.has(own) ? (TEN.find((other) => !taken.has(other)) ?? own) : own
    given.set(id, hue)
    taken.add(hue)
  }
}

/** Two colours of the style sheet: only names of the protocol get that far. */
export function hueOf(colour: string | undefined, actor: string): Hue {
  const hue = given.get(actor) ?? named(colour, actor)
  return { '--hue': `var(--id-${hue})`, '--on-hue': `var(--on-${hue})` }
}

function named(colour: string | undefined, actor: string): string {
  return HUES[colour && Object.hasOwn(HUES, colour) ? colour : defaultColour(actor)]!
}
