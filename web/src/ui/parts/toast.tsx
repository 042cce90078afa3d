// Short messages that go away by themselves. They are read out to those who do not see them.

import { useEffect, useRef } from 'preact/hooks'
import { signal } from '@preact/signals'
import { Icon } from './icon'

type ToastTone = 'plain' | 'good' | 'attention' | 'danger'

interface Toast {
  readonly id: number
  readonly text: string
  readonly tone: ToastTone
}

const SHOWN_MS = 6000
const TOASTS_MAX = 4 // more would cover what they are about; the oldest goes

const toasts = signal<Toast[]>([])
let next = 1

export function toast(text: string, tone: ToastTone = 'plain'): void {
  // The same thing said again is the same message, and not a growing pile.
  const others = toasts.value.filter((toast) => toast.text !== text)
  const id = next++
  toasts.value = [...others, { id, text, tone }].slice(-TOASTS_MAX)
  setTimeout(() => dismiss(id), SHOWN_MS)
}

interface Said {
  readonly message: string
  readonly hint?: string
}

/** A failure in one line: what happened, what to do. */
export function toastError(error: unknown): void {
  const said = error as Partial<Said> | null
  const message = said?.message ?? 'Something went wrong'
  toast(said?.hint ? `${message}. ${capital(said.hint)}` : message, 'danger')
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** The user types: informational toasts get out of the way. */
export function clearToasts(): void {
  const kept = toasts.value.filter((toast) => toast.tone === 'danger' || toast.tone === 'attention')
  if (kept.length < toasts.value.length) toasts.value = kept
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

const places = signal<readonly object[]>([]) // that a page or a box over it has for them; the last one has them

/** Where a page wants them, so that they cover nothing that matters there; and in a box, under which nothing is seen. */
export function ToastPlace() {
  const me = useRef({}).current
  useEffect(() => {
    places.value = [...places.value, me]
    return () => void (places.value = places.value.filter((place) => place !== me))
  }, [])
  return places.value.at(-1) === me ? <Pile class="toasts" /> : null
}

/** Over any page that has no place for them. */
export function Toasts() {
  return places.value.length > 0 ? null : <Pile class="toasts toasts-over" />
}

function Pile({ class: name }: { class: string }) {
  return (
    <div class={name} role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={`toast tone-${toast.tone}`} data-testid="toast">
          <span>{toast.text}</span>
          <button class="icon-button small" aria-label="Dismiss" onClick={() => dismiss(toast.id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  )
}
