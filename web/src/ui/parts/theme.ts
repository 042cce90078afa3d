// Light or dark: as the system prefers, unless the user chose one on this device.

import { computed, signal } from '@preact/signals'
import { keep, recall } from './local'

export type Theme = 'light' | 'dark'
type Choice = Theme | 'system'

const KEY = 'holdfast.theme'

const systemDark = signal(false)
export const choice = signal<Choice>('system')
export const theme = computed<Theme>(() =>
  choice.value === 'system' ? (systemDark.value ? 'dark' : 'light') : choice.value,
)

export function startTheme(): void {
  const query = matchMedia('(prefers-color-scheme: dark)')
  systemDark.value = query.matches
  query.addEventListener('change', () => (systemDark.value = query.matches))
  const kept = recall(KEY)
  choice.value = kept === 'light' || kept === 'dark' ? kept : 'system'
  theme.subscribe((name) => {
    document.documentElement.dataset.theme = name
    const tint = name === 'dark' ? '#101316' : '#f3f3f0' // --bg
    document.querySelector('meta[name=theme-color]')?.setAttribute('content', tint)
  })
}

export function toggleTheme(): void {
  choice.value = theme.value === 'dark' ? 'light' : 'dark'
  keep(KEY, choice.value)
}
