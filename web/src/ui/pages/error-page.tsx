// A whole page for what cannot go on: what happened, why, what to do.

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Trouble } from '../../hold/api'
import { Coded } from '../parts/coded'
import { Brand, ThemeButton } from '../parts/top'
import { go } from '../route'
import { harmless } from '../words/harmless'
import { troublePage } from './trouble'

interface Props {
  readonly code: string
  readonly trouble?: Trouble | null
  readonly about?: string
  readonly children?: ComponentChildren // further actions
}

export function ErrorPage({ code, trouble, about, children }: Props) {
  const page = troublePage(code)
  useEffect(() => {
    document.title = `${page.title} · holdfast`
  }, [page.title])
  return (
    <div class="page" data-testid="error-page" data-code={page.code}>
      <header class="top">
        <Brand />
        <span class="grow" />
        <ThemeButton />
      </header>
      <main class="notice-page">
        {about && <p class="notice-about">{harmless(about, 120)}</p>}
        <h1 data-testid="error-title">{page.title}</h1>
        {page.why && <p>{page.why}</p>}
        <p data-testid="error-hint" class="notice-todo">
          <Coded text={page.todo} />
        </p>
        <div class="actions">
          {children}
          <button class="button" data-testid="error-action" onClick={() => go({ page: 'overview' })}>
            Go to the overview
          </button>
        </div>
        {trouble && (
          <p class="said">
            <span class="faint">Details:</span> {harmless(trouble.message)} <code>{trouble.code}</code>
            {trouble.hint && <span class="said-hint">{harmless(trouble.hint)}</span>}
          </p>
        )}
      </main>
    </div>
  )
}
