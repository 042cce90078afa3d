// A text as exactly what it is: spaces, tabs and line ends to be drawn, characters that do not show or that change how
// others show to be named. Pure.

export type Piece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'space' | 'tab' | 'end' }
  | { readonly kind: 'named'; readonly code: string; readonly name: string } // code: as in `U+200B`

const NAMES: Record<number, string> = {
  0x00: 'null',
  0x07: 'bell',
  0x08: 'backspace',
  0x0b: 'line tabulation',
  0x0c: 'form feed',
  0x0d: 'carriage return',
  0x1b: 'escape',
  0x7f: 'delete',
  0xa0: 'no-break space',
  0xad: 'soft hyphen',
  0x034f: 'combining grapheme joiner',
  0x061c: 'Arabic letter mark',
  0x200b: 'zero-width space',
  0x200c: 'zero-width non-joiner',
  0x200d: 'zero-width joiner',
  0x200e: 'left-to-right mark',
  0x200f: 'right-to-left mark',
  0x202a: 'left-to-right embedding',
  0x202b: 'right-to-left embedding',
  0x202c: 'end of a direction',
  0x202d: 'left-to-right override',
  0x202e: 'right-to-left override',
  0x2060: 'word joiner',
  0x2066: 'left-to-right isolate',
  0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate',
  0x2069: 'end of an isolate',
  0x2800: 'blank Braille pattern',
  0x3000: 'ideographic space',
  0x3164: 'Hangul filler',
  0xfeff: 'zero-width no-break space',
}

// What is drawn as nothing, or as a space that is none, or turns its neighbours round: by its class, and these besides.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Zs}]/u
const BLANK: readonly (readonly [number, number])[] = [
  [0x034f, 0x034f],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x2800, 0x2800],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f], // variation selectors, as the next but one
  [0xffa0, 0xffa0],
  [0xe0100, 0xe01ef],
]

function isHidden(one: string): boolean {
  const point = one.codePointAt(0)!
  return HIDDEN.test(one) || BLANK.some(([first, last]) => first <= point && point <= last)
}

export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  let plain = ''
  const put = (piece: Piece): void => {
    if (plain) pieces.push({ kind: 'text', text: plain })
    plain = ''
    pieces.push(piece)
  }
  for (const one of text) {
    if (one === ' ') put({ kind: 'space' })
    else if (one === '\t') put({ kind: 'tab' })
    else if (one === '\n') put({ kind: 'end' })
    else if (isHidden(one)) put(named(one))
    else plain += one
  }
  if (plain) pieces.push({ kind: 'text', text: plain })
  return pieces
}

function named(one: string): Piece {
  const point = one.codePointAt(0)!
  const code = `U+${point.toString(16).toUpperCase().padStart(4, '0')}`
  return { kind: 'named', code, name: NAMES[point] ?? className(one) }
}

function className(one: string): string {
  if (/\p{Cc}/u.test(one)) return 'control character'
  if (/\p{Zs}/u.test(one)) return 'unusual space'
  if (/[\p{Cn}\p{Co}\p{Cs}]/u.test(one)) return 'unassigned character'
  return 'invisible character'
}

/** What is said below it: `2 invisible characters: zero-width space, escape`; '' when there is none. */
export function hiddenText(pieces: readonly Piece[]): string {
  const found = pieces.flatMap((piece) => (piece.kind === 'named' ? [piece.name] : []))
  if (found.length === 0) return ''
  const names = [...new Set(found)].join(', ')
  return `${found.length} invisible character${found.length === 1 ? '' : 's'}: ${names}`
}

/** For a screen reader: the same in words. */
export function spokenText(pieces: readonly Piece[]): string {
  return pieces
    .map((piece) => {
      if (piece.kind === 'text') return piece.text
      if (piece.kind === 'named') return ` (${piece.name}, ${piece.code}) `
      return { space: ' ', tab: ' (tab) ', end: ' (line end) ' }[piece.kind]
    })
    .join('')
}
