// A QR code as one path of an SVG, with the quiet zone that readers need.

import qrcode from 'qrcode-generator'

const QUIET = 4 // modules of white around it, as the standard asks

export function qrPath(text: string): { size: number; path: string } {
  const code = qrcode(0, 'M')
  code.addData(text, 'Byte')
  code.make()
  const count = code.getModuleCount()
  const runs: string[] = []
  for (let row = 0; row < count; row += 1) {
    for (let from = 0; from < count; from += 1) {
      if (!code.isDark(row, from)) continue
      let to = from
      while (to + 1 < count && code.isDark(row, to + 1)) to += 1
      runs.push(`M${from + QUIET} ${row + QUIET}h${to - from + 1}v1h-${to - from + 1}z`)
      from = to
    }
  }
  return { size: count + 2 * QUIET, path: runs.join('') }
}
