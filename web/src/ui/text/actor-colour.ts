// The colour of an actor. The host names one of eight; where only the id is known, it is chosen the way
// the hosts choose it, so that an actor has one colour everywhere.

const GIVEN = ['red', 'green', 'yellow', 'blue', 'magenta', 'cyan'] as const
const ALL = new Set<string>([...GIVEN, 'black', 'white'])

export function defaultColour(actor: string): string {
  let sum = 0
  for (const byte of new TextEncoder().encode(actor)) sum += byte
  return GIVEN[sum % GIVEN.length] ?? 'blue'
}

/** A colour of the style sheet: only names of the protocol get that far. */
export function hueOf(colour: string | undefined, actor: string): string {
  return `var(--hue-${colour && ALL.has(colour) ? colour : defaultColour(actor)})`
}
