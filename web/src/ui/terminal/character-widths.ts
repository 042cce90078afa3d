// How many columns a character takes: as on the host, or every line after a flag would be out of step.
// Unicode 11 as xterm.js knows it, but for regional indicators, which the host counts as wide each.

import { Unicode11Addon } from '@xterm/addon-unicode11'
import type { IUnicodeVersionProvider, Terminal } from '@xterm/xterm'

const FIRST_INDICATOR = 0x1f1e6
const LAST_INDICATOR = 0x1f1ff
const SOME_WIDE = 0x4e00 // what is wide and joins nothing: a CJK character

export function useHostWidths(term: Terminal): void {
  const known = unicode11()
  const isIndicator = (code: number): boolean => code >= FIRST_INDICATOR && code <= LAST_INDICATOR
  term.unicode.register({
    version: 'host',
    wcwidth: (code) => (isIndicator(code) ? 2 : known.wcwidth(code)),
    charProperties: (code, before) => known.charProperties(isIndicator(code) ? SOME_WIDE : code, before),
  })
  term.unicode.activeVersion = 'host'
}

/** The addon's tables; it offers them to a terminal, and to nobody else. */
function unicode11(): IUnicodeVersionProvider {
  let provider: IUnicodeVersionProvider | null = null
  const taker = {
    unicode: { register: (offered: IUnicodeVersionProvider) => (provider = offered), activeVersion: '' },
  }
  new Unicode11Addon().activate(taker as unknown as Terminal)
  return provider!
}
