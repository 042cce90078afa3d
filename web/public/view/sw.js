// Every request of a page that comes from a port of a session, handed to the shell around the page and from there to the
// app. Requests to other sites are the page's own affair, but those to this machine's port of the same number: a page
// written for localhost means the program it came from.

const SHELL = '/__hold/shell.html'
const BODY_MAX_BYTES = 64 << 20
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]', '0.0.0.0']
const SHIM = new TextEncoder().encode('<script src="/__hold/shim.js"></script>')
const EMPTY = [101, 204, 205, 304]

addEventListener('install', () => skipWaiting())
addEventListener('activate', (event) => event.waitUntil(clients.claim()))

addEventListener('fetch', (event) => {
  const url = new URL(event.request.url)
  if (url.origin === location.origin ? url.pathname.startsWith('/__hold/') : !LOOPBACK.includes(url.hostname)) return
  event.respondWith(carried(event.request))
})

async function carried(request) {
  const shell = (await clients.matchAll({ type: 'window', includeUncontrolled: true })).find(
    (client) => new URL(client.url).pathname === SHELL,
  )
  if (!shell) return failure(request, { code: 'closed', message: 'the view around this page was closed' })
  const body = ['GET', 'HEAD'].includes(request.method) ? null : await request.arrayBuffer()
  if (body && body.byteLength > BODY_MAX_BYTES) return new Response('too long to be carried', { status: 413 })
  const { port1, port2 } = new MessageChannel()
  const answered = new Promise((resolve) => (port1.onmessage = ({ data }) => resolve(data)))
  const asked = { t: 'fetch', url: request.url, method: request.method, headers: [...request.headers], body }
  shell.postMessage(asked, body ? [port2, body] : [port2])
  const head = await answered
  if (head.t !== 'head') return failure(request, head)
  const headers = new Headers()
  for (const [name, value] of head.headers) {
    try {
      headers.append(name, value)
    } catch {
      // What is no header for a browser is left out.
    }
  }
  const { status } = head
  if (EMPTY.includes(status) || request.method === 'HEAD') {
    port1.close() // the app is done with it as soon as it told the head
    return new Response(null, { status, headers })
  }
  const html = ['iframe', 'document', 'frame'].includes(request.destination)
  const shimmed = html && (headers.get('content-type') ?? '').includes('html')
  return new Response(bodyOf(port1, shimmed), { status, statusText: plain(head.reason), headers })
}

function plain(text) {
  return /^[\x20-\x7e]*$/.test(text) ? text : ''
}

/** Pulled, piece by piece: a page that does not read holds the program back. */
function bodyOf(port, shimmed) {
  const waiting = []
  port.onmessage = ({ data }) => waiting.shift()?.(data)
  const next = () => {
    const said = new Promise((resolve) => waiting.push(resolve))
    port.postMessage({ t: 'more' })
    return said
  }
  let first = shimmed
  return new ReadableStream({
    async pull(controller) {
      const said = await next()
      if (said.t === 'data') {
        const piece = new Uint8Array(said.data)
        controller.enqueue(first ? withShim(piece) : piece)
        first = false
      } else if (said.t === 'end') {
        if (first) controller.enqueue(SHIM)
        controller.close()
      } else {
        controller.error(new TypeError(said.message))
      }
    },
    cancel() {
      port.postMessage({ t: 'cancel' })
    },
  })
}

/** Before everything of the page that could open a WebSocket, and behind its doctype. */
function withShim(piece) {
  const start = new TextDecoder('latin1').decode(piece.subarray(0, 1024))
  const doctype = /^(?:\xef\xbb\xbf)?\s*<!doctype[^>]*>/i.exec(start)
  const at = doctype ? doctype[0].length : start.startsWith('\xef\xbb\xbf') ? 3 : 0
  const whole = new Uint8Array(piece.length + SHIM.length)
  whole.set(piece.subarray(0, at))
  whole.set(SHIM, at)
  whole.set(piece.subarray(at), at + SHIM.length)
  return whole
}

function failure(request, { code, message }) {
  const text = `${message} (${code})`
  const wanted = ['iframe', 'document', 'frame'].includes(request.destination)
  const escaped = text.replace(/[&<>]/g, (each) => `&#${each.charCodeAt(0)};`)
  const page = `<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not reached</title>
<body style="font: 15px/1.5 system-ui, sans-serif; margin: 24px"><h1 style="font-size: 18px">The port cannot be shown</h1><p>${escaped}</p>`
  return new Response(wanted ? page : text, {
    status: 502,
    headers: { 'Content-Type': wanted ? 'text/html; charset=utf-8' : 'text/plain; charset=utf-8' },
  })
}
