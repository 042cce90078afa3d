import { afterEach, expect, test, vi } from 'vitest'
import { notifyOutside, permission, silence, startNotices, untrusted } from '../../src/ui/parts/notify'

const NOTICE = { title: 'build', body: 'waits for input', tag: 'build', path: '/' }

function browser(secure: boolean, said: NotificationPermission): void {
  class OnlyByAWorker {
    static readonly permission = said
    constructor() {
      throw new TypeError('Illegal constructor. Use ServiceWorkerRegistration.showNotification() instead.')
    }
  }
  vi.stubGlobal('window', { Notification: OnlyByAWorker })
  vi.stubGlobal('Notification', OnlyByAWorker)
  vi.stubGlobal('isSecureContext', secure)
  vi.stubGlobal('document', { hidden: true })
  vi.stubGlobal('navigator', { serviceWorker: { getRegistration: () => Promise.resolve(undefined) } })
  permission.value = 'default' // so that what startNotices finds is news
  untrusted.value = false
  startNotices()
}

afterEach(() => void vi.unstubAllGlobals())

test('a phone that notifies only by a worker, and has none, says so and does not fail', async () => {
  browser(true, 'granted')
  expect(silence.value).toBe('')
  await notifyOutside(NOTICE)
  expect(silence.value).toBe('untrusted')
})

test('it is known why nobody is notified', () => {
  browser(true, 'default')
  expect(silence.value).toBe('')
  browser(true, 'denied')
  expect(silence.value).toBe('denied')
  browser(false, 'denied')
  expect(silence.value).toBe('insecure')
})
