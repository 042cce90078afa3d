// A long text in pieces that a host takes as one input each.

import { INPUT_MAX_BYTES } from '../wire/generated/constants'

// The host puts the marks of a paste around each piece; a character has at most 4 bytes.
const MARKS_BYTES = 64
export const PIECE_BYTES = INPUT_MAX_BYTES - MARKS_BYTES
export const TRY_AGAIN_S = 0.1
export const PATIENCE_S = 60 // without a piece being taken; then the program does not read

/** Cut between characters, so that no piece is longer than an input may be. */
export function pieces(text: string, most = PIECE_BYTES): string[] {
  const parts: string[] = []
  let from = 0
  let size = 0
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at) as number
    const step = code > 0xffff ? 2 : 1
    const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4
    if (size + bytes > most) {
      parts.push(text.slice(from, at))
      from = at
      size = 0
    }
    size += bytes
    at += step
  }
  if (from < text.length) parts.push(text.slice(from))
  return parts
}
