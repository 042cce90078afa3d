// What a page that is shown from a session's port asks for: requests and WebSockets, handed over by the shell around that
// page, which is of another origin (public/view). They go to that one port of that one session, whatever the page says.

import { asHoldError, HoldError } from '../wire/errors'
import { CookieJar } from './cookie-jar'
import type { PortConnection, PortForwarder } from './port-forward'
import { ask, type Headers, type HttpAnswer, HttpConnection } from './http-client'
import { SocketClient } from './websocket-client'

const AT_ONCE = 32 // requests that have a connection; the others wait
const WAITING_MAX = 1000 // then refused
const IDLE_MAX = 8 // connections kept for the next request
const IDLE_MS = 4000 // less than what servers keep them for
const NO_BODY = [204, 205, 304] // of an answer, for a browser
const LOOPBACK = ['localhost', '127.0.0.1', '[::1]', '0.0.0.0']
// Of the way, or meant for a browser that had asked the program itself.
const DROPPED = new Set([
  'connection',
  'keep-alive',
  'transfer-encoding',
  'content-length',
  'set-cookie',
  'content-security-policy',
  'content-security-policy-report-only',
  'x-frame-options',
  'strict-transport-security',
  'clear-site-data',
  'cross-origin-embedder-policy',
  'cross-origin-opener-policy',
  'service-worker-allowed',
])

interface Fetch {
  t: 'fetch'
  url: string
  method: string
  headers: Headers
  body: ArrayBuffer | null
}

interface Socket {
  t: 'socket'
  url: string
  protocols: string[]
}

type FromSocket = { t: 'send'; data: string | ArrayBuffer } | { t: 'close'; code: number; reason: string }

export class PortPage {
  onReplaced: () => void = () => undefined
  private readonly jar = new CookieJar()
  private made: Promise<PortForwarder> | null = null
  private busy = 0
  private waiting: (() => void)[] = []
  private idle: { connection: HttpConnection; timer: ReturnType<typeof setTimeout> }[] = []
  private closed = false

  /** `way`: makes one; asked for again when the last was lost. `origin`: of the shell. */
  constructor(
    private readonly way: () => Promise<PortForwarder>,
    private readonly port: number,
    private readonly origin: string,
  ) {}

  /** From now on the shell asks through this. */
  serve(shell: MessagePort): void {
    // What comes is a program's word, through a page that is not ours: only its effect here is bounded, to one port.
    shell.onmessage = ({ data, ports: [back] }: MessageEvent<Fetch | Socket | { t: 'replaced' } | null>) => {
      if (data === null || typeof data !== 'object') return
      if (data.t === 'replaced') this.onReplaced()
      else if (data.t === 'fetch' && back) void this.fetch(data, back)
      else if (data.t === 'socket' && back) void this.socket(data, back)
    }
  }

  close(): void {
    this.closed = true
    this.made?.then((way) => way.close()).catch(() => undefined)
  }

  // -- requests ------------------------------------------------------------------------------------

  private async fetch(asked: Fetch, back: MessagePort): Promise<void> {
    if (this.waiting.length >= WAITING_MAX) {
      back.postMessage({
        t: 'failed',
        code: 'limit_reached',
        message: 'the page sent too many requests at once',
      })
      return
    }
    while (this.busy >= AT_ONCE) await new Promise<void>((resolve) => this.waiting.push(resolve))
    this.busy++
    const finish = once(() => {
      this.busy--
      this.waiting.shift()?.()
    })
    try {
      const path = this.pathOf(asked.url)
      const { answer, connection } = await this.answered(asked, path)
      const headers = this.passedOn(answer, path)
      back.postMessage({ t: 'head', status: answer.status, reason: answer.reason, headers })
      if (asked.method === 'HEAD' || NO_BODY.includes(answer.status)) {
        // Nobody asks for a body that cannot be.
        if (answer.status === 205)
          connection.stream.abort() // its server may have sent one
        else await answer.read()
        finish()
      } else {
        give(answer, back, connection, finish)
      }
    } catch (thrown) {
      finish()
      const error = asHoldError(thrown)
      back.postMessage({ t: 'failed', code: error.code, message: error.message })
    }
  }

  private async answered(
    asked: Fetch,
    path: string,
  ): Promise<{ answer: HttpAnswer; connection: HttpConnection }> {
    const request = {
      method: asked.method,
      path,
      host: `localhost:${this.port}`,
      headers: this.headersFor(asked.headers, path),
      body: asked.body ? new Uint8Array(asked.body) : null,
    }
    for (;;) {
      const connection = this.idleOne() ?? new HttpConnection(await this.connect())
      try {
        return { connection, answer: await ask(connection, request, () => this.keep(connection)) }
      } catch (error) {
        connection.stream.abort()
        // One that was used before may have been closed while nobody asked: what only looks is asked once more.
        if (!connection.used || !['GET', 'HEAD'].includes(asked.method)) throw error
      }
    }
  }

  private idleOne(): HttpConnection | null {
    for (;;) {
      const found = this.idle.pop()
      if (!found) return null
      clearTimeout(found.timer)
      if (!found.connection.stream.ended) return found.connection
      found.connection.stream.end()
    }
  }

  private keep(connection: HttpConnection): void {
    if (this.closed || this.idle.length >= IDLE_MAX) return connection.stream.end()
    const timer = setTimeout(() => {
      this.idle = this.idle.filter((each) => each.connection !== connection)
      connection.stream.end()
    }, IDLE_MS)
    this.idle.push({ connection, timer })
  }

  private headersFor(asked: Headers, path: string): Headers {
    const cookie = this.jar.header(path.split('?')[0] as string, Date.now())
    const own = new Set(['accept-encoding', 'cookie', 'origin', 'referer'])
    const headers: Headers = asked.filter(([name]) => !own.has(name.toLowerCase()))
    // The page is of the program's own origin, as far as the program knows.
    headers.push(['Origin', `http://localhost:${this.port}`], ['Accept-Encoding', 'identity'])
    if (cookie) headers.push(['Cookie', cookie])
    return headers
  }

  private passedOn(answer: HttpAnswer, path: string): Headers {
    for (const [name, value] of answer.headers) {
      if (name.toLowerCase() === 'set-cookie') this.jar.set(value, path, Date.now())
    }
    return answer.headers
      .filter(([name]) => !DROPPED.has(name.toLowerCase()))
      .map(([name, value]) =>
        name.toLowerCase() === 'location' ? [name, this.hereFor(value, path)] : [name, value],
      )
  }

  /** A redirect to the program's own address is one to here. */
  private hereFor(location: string, path: string): string {
    try {
      const url = new URL(location, `http://localhost:${this.port}${path}`)
      return this.isOurs(url) ? url.pathname + url.search + url.hash : location
    } catch {
      return location
    }
  }

  // -- WebSockets ----------------------------------------------------------------------------------

  private async socket({ url, protocols }: Socket, back: MessagePort): Promise<void> {
    let connection: PortConnection | null = null
    let socket: SocketClient | null = null
    back.onmessage = ({ data }: MessageEvent<FromSocket>) => {
      if (data.t === 'close') {
        if (socket) socket.close(data.code, data.reason)
        else connection?.abort()
      } else {
        const message = typeof data.data === 'string' ? data.data : new Uint8Array(data.data)
        const size = typeof data.data === 'string' ? data.data.length : data.data.byteLength
        socket?.send(message).then(
          () => back.postMessage({ t: 'sent', size }),
          () => undefined,
        )
      }
    }
    try {
      const path = this.pathOf(url.replace(/^ws/, 'http'))
      connection = await this.connect()
      const headers = this.headersFor([], path).filter(([name]) => name !== 'Accept-Encoding')
      socket = await SocketClient.open(connection, path, `localhost:${this.port}`, protocols, headers)
      back.postMessage({ t: 'open', protocol: socket.protocol })
      const end = await socket.run((message) => back.postMessage({ t: 'message', data: message }))
      back.postMessage({ t: 'close', ...end })
    } catch (thrown) {
      connection?.abort()
      back.postMessage({ t: 'close', code: 1006, reason: asHoldError(thrown).message, clean: false })
    }
  }

  // -- to where ------------------------------------------------------------------------------------

  private isOurs(url: URL): boolean {
    if (url.origin === this.origin) return true
    return LOOPBACK.includes(url.hostname) && Number(url.port || 80) === this.port
  }

  private pathOf(text: string): string {
    const url = new URL(text)
    if (!this.isOurs(url)) throw refused(`${url.host} is not the port that is viewed`)
    return url.pathname + url.search
  }

  private async connect(): Promise<PortConnection> {
    if (this.closed) throw refused('the view is closed')
    if (!this.made) {
      const made = (this.made = this.way())
      made.then(
        (way) => (way.onEnd = () => this.made === made && (this.made = null)),
        () => this.made === made && (this.made = null),
      )
    }
    return (await this.made).connect(this.port)
  }
}

function refused(why: string): HoldError {
  return new HoldError('not_permitted', why)
}

/** The body, piece by piece as it is asked for. */
function give(answer: HttpAnswer, back: MessagePort, connection: HttpConnection, finish: () => void): void {
  back.onmessage = async ({ data }: MessageEvent<{ t: 'more' } | { t: 'cancel' }>) => {
    if (data.t === 'cancel') {
      connection.stream.abort()
      finish()
      return
    }
    try {
      const piece = await answer.read()
      if (piece === null) {
        finish()
        back.postMessage({ t: 'end' })
      } else {
        const copy = piece.slice()
        back.postMessage({ t: 'data', data: copy.buffer }, [copy.buffer])
      }
    } catch (thrown) {
      connection.stream.abort()
      finish()
      back.postMessage({ t: 'failed', code: asHoldError(thrown).code, message: asHoldError(thrown).message })
    }
  }
}

function once(work: () => void): () => void {
  let done = false
  return () => {
    if (!done) work()
    done = true
  }
}
