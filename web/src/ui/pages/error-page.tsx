// A full page for an error that cannot be recovered from: what happened, why, what to do.

import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Trouble } from '../../hold/api'
import { InlineCode } from '../parts/inline-code'
import { NoticePage } from '../parts/top-bar'
import { go } from '../route'
import { sanitize } from '../text/sanitize'
import { errorText } from './error-texts'

interface Props {
  readonly code: string
  readonly trouble?: Trouble | null
  readonly about?: string
  readonly children?: ComponentChildren // further actions
}

export function ErrorPage({ code, trouble, about, children }: Props) {
  const page = errorText(code)
  useEffect(() => {
    document.title = `${page.title} · holdfast`
  }, [page.title])
  return (
    <NoticePage testid="error-page" code={page.code}>
      {about && <p class="notice-about">{sanitize(about, 120)}</p>}
      <h1 data-testid="error-title">{page.title}</h1>
      {page.why && <p>{page.why}</p>}
      <p data-testid="error-hint" class="notice-todo">
        <InlineCode text={page.todo} />
      </p>
      <div class="actions">
        {children}
        <button class="button" data-testid="error-action" onClick={() => go({ page: 'overview' })}>
          Go to the overview
        </button>
      </div>
      {trouble && (
        <p class="said">
          <span class="faint">Details:</span> {sanitize(trouble.message)} <code>{trouble.code}</code>
          {trouble.hint && (
            <span class="said-hint">
              <InlineCode text={sanitize(trouble.hint)} />
            </span>
          )}
        </p>
      )}
    </NoticePage>
  )
}
