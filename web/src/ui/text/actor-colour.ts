// The hue of an actor. The host names one of eight colours, as terminals know them; where only the id is known, the
// name is chosen the way the hosts choose it. Here each name stands for a hue that is no status: red is for danger only.

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

/** Two colours of the style sheet: only names of the protocol get that far. */
export function hueOf(colour: string | undefined, actor: string): Hue {
  const known = colour && Object.hasOwn(HUES, colour) ? colour : defaultColour(actor)
  return { '--hue': `var(--id-${HUES[known]})`, '--on-hue': `var(--on-${HUES[known]})` }
}
