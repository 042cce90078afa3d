// Connections to ports from a page: their window, HTTP and WebSockets over them, cookies.

import { describe, expect, it } from 'vitest'
import { CookieJar } from '../src/hold/cookie-jar'
import { type ByteStream, PortConnection, type PortForwarder } from '../src/hold/port-forward'
import { ask, encodeHead, HttpConnection, type HttpRequest } from '../src/hold/http-client'
import { PortPage } from '../src/hold/port-page'
import { SocketClient } from '../src/hold/websocket-client'
import { concat, utf8 } from '../src/wire/bytes'
import { HoldError } from '../src/wire/errors'
import { FORWARD_PIECE_BYTES, FORWARD_WINDOW_BYTES } from '../src/wire/generated/constants'

const GET: HttpRequest = { method: 'GET', path: '/', host: 'localhost:3000', headers: [], body: null }

/** A server that says these pieces, whatever it is asked. */
class Scripted implements ByteStream {
  written: Uint8Array = new Uint8Array(0)
  over = false
  ended = false
  private readonly pieces: Uint8Array[]

  constructor(...pieces: (string | Uint8Array)[]) {
    this.pieces = pieces.map((each) => (typeof each === 'string' ? utf8(each) : each))
  }
  async write(data: Uint8Array): Promise<void> {
    this.written = concat(this.written, data)
  }
  end(): void {
    this.over = true
  }
  abort(): void {
    this.over = true
  }
  async read(): Promise<Uint8Array | null> {
    return this.pieces.shift() ?? null
  }
  get text(): string {
    return new TextDecoder().decode(this.written)
  }
}

async function body(answer: { read(): Promise<Uint8Array | null> }): Promise<string> {
  let whole: Uint8Array = new Uint8Array(0)
  for (let piece; (piece = await answer.read()) !== null;) whole = concat(whole, piece)
  return new TextDecoder().decode(whole)
}

describe('a connection to a port', () => {
  const said: Parameters<ConstructorParameters<typeof PortConnection>[0]>[0][] = []
  const made = () => {
    said.length = 0
    return new PortConnection(
      (word) => said.push(word),
      () => undefined,
    )
  }
  const size = () => said.reduce((sum, word) => sum + (word.t === 'forward_data' ? word.data.length : 0), 0)
  const settle = () => new Promise((resolve) => setTimeout(resolve, 0))

  it('sends no more than there is room for, in pieces, and goes on when there is', async () => {
    const connection = made()
    let written = false
    void connection.write(new Uint8Array(FORWARD_WINDOW_BYTES + 1)).then(() => (written = true))
    await settle()
    expect(size()).toBe(FORWARD_WINDOW_BYTES)
    expect(written).toBe(false)
    expect(Math.max(...said.map((word) => (word.t === 'forward_data' ? word.data.length : 0)))).toBe(
      FORWARD_PIECE_BYTES,
    )
    connection.onMessage({ t: 'forward_room', size: 65536 })
    await settle()
    expect([size(), written]).toEqual([FORWARD_WINDOW_BYTES + 1, true])
  })

  it('tells of room only when what came was read', async () => {
    const connection = made()
    for (let at = 0; at < 8; at++) connection.onMessage({ t: 'forward_data', data: new Uint8Array(16384) })
    await settle()
    expect(said).toEqual([])
    for (let at = 0; at < 4; at++) await connection.read()
    expect(said).toEqual([{ t: 'forward_room', size: 65536 }])
  })

  it('gives what came before a cut, then why it was cut', async () => {
    const connection = made()
    connection.onMessage({ t: 'forward_data', data: utf8('half') })
    connection.onMessage({ t: 'forward_closed', code: 'not_permitted', message: 'no more' })
    expect(await connection.read()).toEqual(utf8('half'))
    await expect(connection.read()).rejects.toMatchObject({ code: 'not_permitted' })
    await expect(connection.write(utf8('x'))).rejects.toBeInstanceOf(HoldError)
  })

  it('ends one way and still reads the other', async () => {
    const connection = made()
    connection.end()
    await settle()
    expect(said).toEqual([{ t: 'forward_end' }])
    connection.onMessage({ t: 'forward_data', data: utf8('answer') })
    connection.onMessage({ t: 'forward_end' })
    expect(await connection.read()).toEqual(utf8('answer'))
    expect(await connection.read()).toBeNull()
  })
})

describe('HTTP over it', () => {
  it('reads a body by its length, by chunks, and until the end', async () => {
    const bodies = [
      ['HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel', 'lo, and what is not of it'],
      [
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhe',
        'l\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n',
      ],
      ['HTTP/1.0 200 OK\r\n\r\nhel', 'lo'],
    ]
    for (const pieces of bodies)
      expect(await body(await ask(new HttpConnection(new Scripted(...pieces)), GET))).toBe('hello')
  })

  it('is asked again on the same connection when the end of the answer is known', async () => {
    const stream = new Scripted('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na', 'HTTP/1.1 204 No\r\n\r\n')
    const connection = new HttpConnection(stream)
    let free = 0
    const next = () => ask(connection, GET, () => free++)
    expect(await body(await next())).toBe('a')
    expect(await body(await next())).toBe('')
    expect([free, stream.over]).toEqual([2, false])
    const closing = new Scripted('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na')
    await body(await ask(new HttpConnection(closing), GET, () => free++))
    expect([free, closing.over]).toEqual([2, true])
  })

  it('says an answer that was cut off is not all', async () => {
    for (const head of ['Content-Length: 9', 'Transfer-Encoding: chunked']) {
      const answer = await ask(
        new HttpConnection(new Scripted(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n5\r\nhal`)),
        GET,
      )
      await expect(body(answer)).rejects.toMatchObject({ code: 'connection_reset' })
    }
    await expect(ask(new HttpConnection(new Scripted('SSH-2.0\r\n')), GET)).rejects.toThrow(
      'does not speak HTTP',
    )
  })

  it('passes over what is only on the way', async () => {
    const stream = new Scripted(
      'HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n',
    )
    expect((await ask(new HttpConnection(stream), GET)).status).toBe(404)
  })

  it('cannot be made to say a second request', () => {
    for (const spoilt of [
      { method: 'GET / HTTP/1.1\r\nX: y' },
      { path: '/\r\nX: y' },
      { path: '/a b' },
      { path: 'http://elsewhere.example/' },
      { headers: [['X', 'a\r\nY: b']] as [string, string][] },
      { headers: [['X: a\r\nY', 'b']] as [string, string][] },
    ]) {
      expect(() => encodeHead({ ...GET, ...spoilt }, 'close')).toThrow(HoldError)
    }
    const head = encodeHead(
      {
        ...GET,
        headers: [
          ['Transfer-Encoding', 'chunked'],
          ['Host', 'other'],
        ],
      },
      'close',
    )
    expect(new TextDecoder().decode(head)).toBe(
      'GET / HTTP/1.1\r\nHost: localhost:3000\r\nConnection: close\r\n\r\n',
    )
  })
})

describe('a WebSocket over it', () => {
  it('is refused when the server does not prove that it speaks it', async () => {
    const liar = new Scripted('HTTP/1.1 101 Yes\r\nSec-WebSocket-Accept: nonsense\r\n\r\n')
    await expect(SocketClient.open(liar, '/ws', 'localhost', [], [])).rejects.toMatchObject({
      code: 'connection_reset',
    })
  })
})

describe('a page of a port', () => {
  const MANY = 70 // more than two times as many as have a connection at once
  const ORIGIN = 'http://view.example'

  /** What the worker hears first of each, and how many connections were made; it asks for no body. */
  async function heads(method: string, answer: string) {
    const streams: Scripted[] = []
    const connect = async () => {
      streams.push(new Scripted(answer, answer))
      return streams.at(-1)
    }
    const way = { connect, close: () => undefined, onEnd: () => undefined } as unknown as PortForwarder
    const page = new PortPage(async () => way, 3000, ORIGIN)
    const shell = new MessageChannel()
    page.serve(shell.port2)
    const said: string[] = []
    for (let count = 0; count < MANY; count++) {
      const { port1, port2 } = new MessageChannel()
      const heard = new Promise<string>((resolve) => (port1.onmessage = ({ data }) => resolve(data.t)))
      shell.port1.postMessage({ t: 'fetch', url: `${ORIGIN}/`, method, headers: [], body: null }, [port2])
      said.push(await heard)
      port1.close()
    }
    shell.port1.close()
    page.close()
    return { said, streams }
  }

  it('has as many answers without a body as it likes', async () => {
    const cases: [string, string][] = [
      ['GET', 'HTTP/1.1 204 No\r\n\r\n'],
      ['GET', 'HTTP/1.1 304 Same\r\n\r\n'],
      ['GET', 'HTTP/1.1 205 Reset\r\n\r\n'],
      ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'],
    ]
    for (const [method, answer] of cases) {
      const { said } = await heads(method, answer)
      expect(said, answer).toEqual(Array(MANY).fill('head'))
    }
  })

  it('keeps the connection of an answer that cannot have a body, and of no other', async () => {
    const kept = await heads('GET', 'HTTP/1.1 204 No\r\n\r\n')
    expect(kept.streams.length).toBeLessThan(MANY)
    const reset = await heads('GET', 'HTTP/1.1 205 Reset\r\n\r\n')
    expect(reset.streams.map(({ over }) => over)).toEqual(Array(MANY).fill(true))
  })

  it('gets an error when a browser cannot show the status', async () => {
    const stream = new Scripted('HTTP/1.1 999 Odd\r\n\r\n')
    await expect(ask(new HttpConnection(stream), GET)).rejects.toThrow('does not speak HTTP')
  })
})

describe('cookies of one port', () => {
  it('are sent to where they belong until they end', () => {
    const jar = new CookieJar()
    jar.set('a=1; Path=/; HttpOnly', '/login', 0)
    jar.set('b=2; Path=/app; Max-Age=10', '/login', 0)
    jar.set('c=3', '/deep/er/page', 0)
    jar.set('no cookie', '/', 0)
    expect(jar.header('/app/x', 0)).toBe('b=2; a=1')
    expect(jar.header('/apple', 0)).toBe('a=1')
    expect(jar.header('/deep/er/other', 0)).toBe('c=3; a=1')
    expect(jar.header('/app', 10_001)).toBe('a=1')
    jar.set('a=; Path=/; Max-Age=0', '/', 0)
    expect(jar.header('/', 0)).toBeNull()
  })
})
