// Keeps the app's own files, so that it opens without a network and says so itself. Nothing of a session
// ever passes here: that comes over a WebSocket, which a service worker does not see.

const SHELL = 'holdfast-shell-1'
const KEPT = ['/icon.svg', '/icon-192.png', '/manifest.webmanifest']
const ASSETS_MAX = 60 // of several builds together; the oldest go

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(SHELL).then((cache) => cache.addAll(['/', ...KEPT])))
  self.skipWaiting()
})

self.addEventListener('activate', (event) => {
  const clean = async () => {
    for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name)
    await self.clients.claim()
  }
  event.waitUntil(clean())
})

self.addEventListener('fetch', (event) => {
  const { request } = event
  const url = new URL(request.url)
  if (request.method !== 'GET' || url.origin !== self.location.origin) return
  if (request.mode === 'navigate') event.respondWith(page(request))
  else if (url.pathname.startsWith('/assets/')) event.respondWith(asset(request))
  else if (KEPT.includes(url.pathname)) event.respondWith(fresh(request, request))
})

// Every address of the app is the same page; the newest is taken when there is a network.
async function page(request) {
  return fresh(request, '/')
}

async function fresh(request, key) {
  const cache = await caches.open(SHELL)
  try {
    const answer = await fetch(request)
    // What it cannot be is another site's login page or an error of something in between.
    if (answer.ok && !answer.redirected) await cache.put(key, answer.clone())
    return answer
  } catch (error) {
    const kept = await cache.match(key)
    if (kept) return kept
    throw error
  }
}

// A name with a hash in it never changes its content.
async function asset(request) {
  const cache = await caches.open(SHELL)
  const kept = await cache.match(request)
  if (kept) return kept
  const answer = await fetch(request)
  if (answer.ok) {
    await cache.put(request, answer.clone())
    const assets = (await cache.keys()).filter((one) => new URL(one.url).pathname.startsWith('/assets/'))
    for (const old of assets.slice(0, Math.max(0, assets.length - ASSETS_MAX))) await cache.delete(old)
  }
  return answer
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close()
  const path = event.notification.data?.path ?? '/'
  const open = async () => {
    const pages = await self.clients.matchAll({ type: 'window', includeUncontrolled: true })
    if (pages.length === 0) return self.clients.openWindow(path)
    await pages[0].focus()
    pages[0].postMessage({ path })
  }
  event.waitUntil(open())
})
