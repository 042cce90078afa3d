// Search in the scrollback that this page has, with the number of matches.

import { useLayoutEffect, useRef } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { Icon } from '../parts/icon'
import type { SessionController } from './session-controller'

// Colours that both themes read on; xterm wants them as numbers and not as names of the style sheet.
const MARKS = {
  matchBackground: '#f2d28b',
  matchOverviewRuler: '#b8860b',
  activeMatchBackground: '#f2a13b',
  activeMatchColorOverviewRuler: '#b8860b',
}

interface Matches {
  readonly at: number // of the one that is shown, from 0; -1 when there are too many to number
  readonly count: number
}

export function FindBar({ controller }: { controller: SessionController }) {
  const field = useRef<HTMLInputElement>(null)
  const matches = useSignal<Matches | null>(null)
  // Before anybody can type into it: the first result counts too.
  useLayoutEffect(() => {
    field.current?.focus()
    const listening = controller.screen?.search.onDidChangeResults(({ resultIndex, resultCount }) => {
      matches.value = { at: resultIndex, count: resultCount }
    })
    return () => listening?.dispose()
  }, [controller])
  const find = (back: boolean, incremental = false): void => {
    const text = field.current?.value ?? ''
    const search = controller.screen?.search
    if (!search) return
    if (text === '') {
      search.clearDecorations()
      matches.value = null
    } else if (back) search.findPrevious(text, { decorations: MARKS, incremental })
    else search.findNext(text, { decorations: MARKS, incremental })
  }
  const close = (): void => {
    controller.screen?.search.clearDecorations()
    controller.finding.value = false
    controller.screen?.term.focus()
  }
  const none = matches.value?.count === 0
  return (
    <div class="find-bar row" role="search">
      <input
        ref={field}
        data-testid="find"
        aria-label="Find in the scrollback"
        placeholder="Find"
        aria-invalid={none}
        onInput={() => find(true, true)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') find(!event.shiftKey)
          if (event.key === 'Escape') close()
        }}
      />
      <span class="find-count faint" role="status" data-testid="find-count">
        {countText(matches.value)}
      </span>
      <button class="icon-button small" aria-label="Previous match" onClick={() => find(true)}>
        <Icon name="up" />
      </button>
      <button class="icon-button small" aria-label="Next match" onClick={() => find(false)}>
        <Icon name="down" />
      </button>
      <button class="icon-button small" aria-label="Close" onClick={close}>
        <Icon name="close" />
      </button>
    </div>
  )
}

function countText(found: Matches | null): string {
  if (!found) return ''
  if (found.count === 0) return 'not found'
  if (found.at < 0) return `${found.count} or more`
  return `${found.at + 1} of ${found.count}`
}
