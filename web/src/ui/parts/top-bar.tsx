// The parts of the top bar that every page has.

import { go } from '../route'
import { Icon } from './icon'
import { theme, toggleTheme } from './theme'

export function Brand() {
  return (
    <a
      class="brand"
      href="/"
      onClick={(event) => {
        event.preventDefault()
        go({ page: 'overview' })
      }}
    >
      <Icon name="anchor" />
      <span>holdfast</span>
    </a>
  )
}

export function ThemeButton() {
  const next = theme.value === 'dark' ? 'light' : 'dark'
  return (
    <button
      class="icon-button"
      data-testid="theme-toggle"
      aria-label={`Switch to the ${next} theme`}
      title={`Switch to the ${next} theme`}
      onClick={toggleTheme}
    >
      <Icon name={next === 'light' ? 'sun' : 'moon'} />
    </button>
  )
}
