// The sixteen colours of the terminal, for dark and light. Chosen so that each is readable as text on the
// terminal's background, which is `--terminal` of the style sheet.

import type { ITheme } from '@xterm/xterm'

export const DARK: ITheme = {
  background: '#0d1013',
  foreground: '#dfe3e6',
  cursor: '#eceef0',
  cursorAccent: '#0d1013',
  selectionBackground: '#3b5a8899',
  black: '#171b1f',
  red: '#ff8a80',
  green: '#7fcf8f',
  yellow: '#e6c067',
  blue: '#86b7ff',
  magenta: '#d7a4f2',
  cyan: '#6fcbd3',
  white: '#b9c0c6',
  brightBlack: '#98a1a9',
  brightRed: '#ffaaa3',
  brightGreen: '#a3e0b0',
  brightYellow: '#f3d68d',
  brightBlue: '#a9ccff',
  brightMagenta: '#e5c2f8',
  brightCyan: '#97dfe5',
  brightWhite: '#f6f8f9',
}

export const LIGHT: ITheme = {
  background: '#fffefb',
  foreground: '#1b1e20',
  cursor: '#1b1e20',
  cursorAccent: '#fffefb',
  selectionBackground: '#a9c8ef99',
  black: '#1b1e20',
  red: '#b3261e',
  green: '#1e6b34',
  yellow: '#7a4a00',
  blue: '#1556a8',
  magenta: '#7b2f96',
  cyan: '#0b6570',
  white: '#5c6165',
  brightBlack: '#5c6165',
  brightRed: '#c2332a',
  brightGreen: '#2a7a41',
  brightYellow: '#87540a',
  brightBlue: '#2465b8',
  brightMagenta: '#8c3fa8',
  brightCyan: '#12717d',
  brightWhite: '#484d51',
}

export const FONTS =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace'
