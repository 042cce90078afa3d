// Light or dark: as the system prefers, unless the user chose one on this device.

import { computed, signal } from '@preact/signals'

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
  choice.value = stored()
  theme.subscribe((name) => {
    document.documentElement.dataset.theme = name
    const tint = name === 'dark' ? '#15181d' : '#f6f7f7'
    document.querySelector('meta[name=theme-color]')?.setAttribute('content', tint)
  })
}

export function toggleTheme(): void {
  choice.value = theme.value === 'dark' ? 'light' : 'dark'
  try {
    localStorage.setItem(KEY, choice.value)
  } catch {
    // Storage can be shut off; the choice then lasts as long as the page.
  }
}

function stored(): Choice {
  try {
    const kept = localStorage.getItem(KEY)
    return kept === 'light' || kept === 'dark' ? kept : 'system'
  } catch {
    return 'system'
  }
}
