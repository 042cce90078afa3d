// The frame around a page that comes from a port of a session. It is of an origin of its own, which is not the app's: a
// page's scripts can reach all of this origin, and nothing of the app's but the port they came from anyway.
//
// It starts the service worker, which hands every request of the page to this document; this hands it to the app around
// it, which has the way to the session. Only one view is open at a time here: a new one ends the old.

const word = document.getElementById('word')
const page = document.getElementById('page')
let app = null
let ours = true

const others = new BroadcastChannel('hold view')
others.postMessage('here')
others.onmessage = () => {
  ours = false
  app?.postMessage({ t: 'replaced' })
  // Away from here: the worker must not take this for the shell any more.
  setTimeout(() => location.replace('about:blank'), 0)
}

addEventListener('message', (event) => {
  // Who may frame us is said by our headers: it is the app.
  if (event.source !== parent || event.data?.t !== 'app' || !event.ports[0]) return
  app = event.ports[0]
  show(typeof event.data.path === 'string' ? event.data.path : '/')
})

navigator.serviceWorker?.addEventListener('message', (event) => {
  if (ours && app) app.postMessage(event.data, [...event.ports])
  else event.ports[0]?.postMessage({ t: 'failed', code: 'closed', message: 'this view is closed' })
})

/** For the shim in the pages. */
globalThis.holdSocket = (url, protocols) => {
  const { port1, port2 } = new MessageChannel()
  app.postMessage({ t: 'socket', url, protocols }, [port2])
  return port1
}

async function begin() {
  // What the page of another port left behind is not for this one. The app knows whose it was: pages cannot change that.
  if (location.hash !== '#keep') {
    await fetch('/__hold/clear', { method: 'POST' })
    localStorage.clear()
  }
  await navigator.serviceWorker.register('/__hold/sw.js', { scope: '/', updateViaCache: 'none' })
  await navigator.serviceWorker.ready
  parent.postMessage({ t: 'ready' }, '*') // nothing secret in it, and whoever frames us is the app
}

function show(path) {
  page.src = path.startsWith('/') && !path.startsWith('//') ? path : '/'
  page.hidden = false
  word.hidden = true
}

if (parent === window) word.textContent = 'This is shown inside the app only.'
else begin().catch((error) => parent.postMessage({ t: 'failed', message: String(error) }, '*'))
