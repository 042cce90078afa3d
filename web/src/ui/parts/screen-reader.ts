// Whether the terminal keeps its lines as text for a screen reader. Off unless somebody asks for it: it costs a drawing
// of every line, and a screen reader is nothing that a page is told of.

import { signal } from '@preact/signals'
import { keep, recall } from './local'

const KEY = 'holdfast.screen-reader'

export const screenReader = signal(recall(KEY) === 'on')

export function toggleScreenReader(): void {
  screenReader.value = !screenReader.value
  keep(KEY, screenReader.value ? 'on' : 'off')
}
