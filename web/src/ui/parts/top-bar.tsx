// The parts of the top bar that every page has.

import { go } from '../route'
import type { ComponentChildren } from 'preact'
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

/** A page of words, under a bar with nothing but the app's name. */
export function NoticePage({ testid, code, children }: NoticeProps) {
  return (
    <div class="page" data-testid={testid} data-code={code}>
      <header class="top row">
        <Brand />
        <span class="grow" />
        <ThemeButton />
      </header>
      <main class="notice-page">{children}</main>
    </div>
  )
}

interface NoticeProps {
  readonly testid: string
  readonly code?: string
  readonly children: ComponentChildren
}
