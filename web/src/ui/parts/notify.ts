// Notices outside the page, while it is open in the background. They are made on this device from what
// it sees itself: no push service learns anything. A secret's prompt is named, never what is typed.

import { computed, signal } from '@preact/signals'

type Permission = 'default' | 'granted' | 'denied' | 'missing'

export const permission = signal<Permission>('missing')
/** Only a service worker may notify here, and the browser lets this page have none. */
export const untrusted = signal(false)

export type Silence = '' | 'insecure' | 'missing' | 'untrusted' | 'denied'

/** Why nobody can be notified; '': somebody can, or could be asked. */
export const silence = computed<Silence>(() => {
  if (permission.value === 'missing') return isSecureContext ? 'missing' : 'insecure'
  if (untrusted.value) return 'untrusted'
  return permission.value === 'denied' ? 'denied' : ''
})

export interface Outside {
  readonly title: string
  readonly body: string
  readonly tag: string // a later notice with the same tag takes the place of this one
  readonly path: string // where a click leads
}

export function startNotices(): void {
  permission.value = 'Notification' in window && isSecureContext ? Notification.permission : 'missing'
}

export async function askPermission(): Promise<void> {
  if (permission.value === 'missing') return
  permission.value = await Notification.requestPermission()
}

/** Shown only when nobody looks at the page: otherwise the page itself says it. */
export async function notifyOutside(notice: Outside): Promise<void> {
  if (permission.value !== 'granted' || !document.hidden) return
  const options = { body: notice.body, tag: notice.tag, icon: '/icon-192.png', data: { path: notice.path } }
  try {
    const worker = await navigator.serviceWorker?.getRegistration()
    if (worker) await worker.showNotification(notice.title, options)
    else new Notification(notice.title, options)
  } catch {
    untrusted.value = true // phones allow them only by a worker, and throw otherwise
  }
}
