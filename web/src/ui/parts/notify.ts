// Notices outside the page, while it is open in the background. They are made on this device from what
// it sees itself: no push service learns anything. A secret's prompt is named, never what is typed.

import { signal } from '@preact/signals'

export type Permission = 'default' | 'granted' | 'denied' | 'missing'

export const permission = signal<Permission>('missing')

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
  const worker = await navigator.serviceWorker?.getRegistration()
  // Phones allow them only by the service worker.
  if (worker) await worker.showNotification(notice.title, options)
  else new Notification(notice.title, options)
}
