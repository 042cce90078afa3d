// Keys that a phone's keyboard does not have, and modifiers that stay for one key.

export interface Modifiers {
  readonly ctrl: boolean
  readonly alt: boolean
}

export const NO_MODIFIERS: Modifiers = { ctrl: false, alt: false }

export type NamedKey = 'Esc' | 'Tab' | 'Up' | 'Down' | 'Left' | 'Right' | 'Home' | 'End' | 'PgUp' | 'PgDn'

const ARROWS: Partial<Record<NamedKey, string>> = {
  Up: 'A',
  Down: 'B',
  Right: 'C',
  Left: 'D',
  Home: 'H',
  End: 'F',
}

/** What a terminal sends for the key; arrows differ when the program asked for application mode. */
export function keyText(key: NamedKey, held: Modifiers, applicationCursor: boolean): string {
  if (key === 'Esc') return held.alt ? '\x1b\x1b' : '\x1b'
  if (key === 'Tab') return held.alt ? '\x1b\t' : '\t'
  const modifier = 1 + (held.alt ? 2 : 0) + (held.ctrl ? 4 : 0)
  const arrow = ARROWS[key]
  if (arrow) {
    if (modifier > 1) return `\x1b[1;${modifier}${arrow}`
    return applicationCursor ? `\x1bO${arrow}` : `\x1b[${arrow}`
  }
  const number = key === 'PgUp' ? 5 : 6
  return modifier > 1 ? `\x1b[${number};${modifier}~` : `\x1b[${number}~`
}

/** A typed character with the modifiers that were set before it. Longer text is left alone. */
export function modified(text: string, held: Modifiers): string {
  if (!held.ctrl && !held.alt) return text
  if ([...text].length !== 1) return text
  const typed = held.ctrl ? withCtrl(text) : text
  return held.alt ? `\x1b${typed}` : typed
}

function withCtrl(char: string): string {
  if (char === ' ' || char === '2') return '\x00'
  if (char === '?' || char === '8') return '\x7f'
  const code = char.toUpperCase().charCodeAt(0)
  // @ A..Z [ \ ] ^ _ become 0..31, as on every terminal.
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code & 0x1f) : char
}

const REPORT = /^(?:\x1b\[<\d+;\d+;\d+[Mm]|\x1b\[M[\s\S]{3}|\x1b\[[IO])+$/ // eslint-disable-line no-control-regex

/** Mouse and focus reports: nobody typed them, so they never ask for the turn. */
export function isReport(text: string): boolean {
  return REPORT.test(text)
}

type Flag = 'isComposing' | 'ctrlKey' | 'altKey' | 'metaKey'
type Pressed = Pick<KeyboardEvent, 'key' | 'getModifierState' | Flag>

/** One character of ASCII, as typed, that no modifier but Shift and no input method has to do with. */
export function isPlain(event: Pressed): boolean {
  const { key } = event
  if (key.length !== 1 || key < ' ' || key > '~' || event.isComposing) return false
  if (event.ctrlKey || event.altKey || event.metaKey) return false
  // With the first, some input methods mean another letter than they say; the second is Alt on some keyboards.
  return !event.getModifierState('CapsLock') && !event.getModifierState('AltGraph')
}
