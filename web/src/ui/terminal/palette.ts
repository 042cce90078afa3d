// The sixteen colours of the terminal, for dark and light. Chosen so that each is readable as text on the
// page's own background, which is also the terminal's.

import type { ITheme } from '@xterm/xterm'

export const DARK: ITheme = {
  background: '#101317',
  foreground: '#d6dae1',
  cursor: '#6fd0c4',
  cursorAccent: '#101317',
  selectionBackground: '#2f5f6d99',
  black: '#1d2127',
  red: '#ee7a76',
  green: '#8cc570',
  yellow: '#dcb55f',
  blue: '#6fa8ee',
  magenta: '#c490e4',
  cyan: '#5fc4c0',
  white: '#c7ccd4',
  brightBlack: '#6c7683',
  brightRed: '#ff9a95',
  brightGreen: '#a9dc8e',
  brightYellow: '#f0cd81',
  brightBlue: '#93c1fa',
  brightMagenta: '#dab0f3',
  brightCyan: '#86dcd8',
  brightWhite: '#f3f5f8',
}

export const LIGHT: ITheme = {
  background: '#ffffff',
  foreground: '#23282f',
  cursor: '#0e736c',
  cursorAccent: '#ffffff',
  selectionBackground: '#9fd3d099',
  black: '#23282f',
  red: '#b3261e',
  green: '#2f6f26',
  yellow: '#7d5600',
  blue: '#1d5bb0',
  magenta: '#8a3aa8',
  cyan: '#0b6a70',
  white: '#5c6570',
  brightBlack: '#767f8b',
  brightRed: '#c8372e',
  brightGreen: '#3c8431',
  brightYellow: '#936700',
  brightBlue: '#2a6fcb',
  brightMagenta: '#a04cc0',
  brightCyan: '#148087',
  brightWhite: '#3b434d',
}

export const FONTS =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace'
