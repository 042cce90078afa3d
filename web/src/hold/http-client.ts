// HTTP/1.1 over a connection to a port: one request at a time, each with its answer. The page has no other way to speak
// HTTP to a program in a session. What is asked is made of parts that are checked: nothing in them can begin a
// second request.

import { HoldError } from '../wire/errors'
import { ByteReader, spoilt } from './byte-reader'
import type { ByteStream } from './port-forward'

export type Headers = [name: string, value: string][]

export interface HttpRequest {
  method: string
  path: string // with its query
  host: string // as in the Host header
  headers: Headers
  body: Uint8Array | null
}

export interface HttpAnswer {
  status: number
  reason: string
  headers: Headers
  /** The next bytes; null: that was all. Rejects when it is cut off before. */
  read(): Promise<Uint8Array | null>
}

const LINE_BYTES = 64 << 10
const HEADERS_MAX = 256
const PIECE_BYTES = 64 << 10
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const PATH = /^\/[\x21-\x7e]*$/
// Of the way between two ends, not of what is asked; we say our own.
const OURS = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'keep-alive',
  'upgrade',
  'te',
  'expect',
])

/** A connection that is asked one thing after another. */
export class HttpConnection {
  readonly reader: ByteReader
  /** It was asked before: a server may have closed it by the time it is asked again. */
  used = false

  constructor(readonly stream: ByteStream) {
    this.reader = new ByteReader(stream)
  }
}

/** `onFree`: all was read, and it may be asked again; otherwise it is ended then. */
export async function ask(
  connection: HttpConnection,
  request: HttpRequest,
  onFree: () => void = () => undefined,
): Promise<HttpAnswer> {
  const { stream, reader } = connection
  // Not awaited: a server may answer before it has read all.
  const sent = [stream.write(encodeHead(request, 'keep-alive'))]
  if (request.body?.length) sent.push(stream.write(request.body))
  let whole = false
  Promise.all(sent).then(
    () => (whole = true),
    () => undefined,
  )
  let answer = await readHead(reader)
  while (answer.status < 200) answer = await readHead(reader)
  const { status, reason, headers } = answer
  const none = request.method === 'HEAD' || status === 204 || status === 304
  const body = none ? { read: () => Promise.resolve(null), bounded: true } : bodyOf(reader, headers)
  const keeps = body.bounded && answer.keeps && header(headers, 'connection')?.toLowerCase() !== 'close'
  return {
    status,
    reason,
    headers,
    async read() {
      const piece = await body.read()
      if (piece === null) {
        if (keeps && whole && !stream.ended) {
          connection.used = true
          onFree()
        } else {
          stream.end()
        }
      }
      return piece
    },
  }
}

export function encodeHead(request: HttpRequest, connection: string, more: Headers = []): Uint8Array {
  const { method, path, host, body } = request
  if (!TOKEN.test(method) || !PATH.test(path) || !VALUE.test(host)) {
    throw new HoldError('invalid_argument', 'not a request that can be sent')
  }
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, `Connection: ${connection}`]
  for (const [name, value] of [
    ...request.headers.filter(([each]) => !OURS.has(each.toLowerCase())),
    ...more,
  ]) {
    if (!TOKEN.test(name) || !VALUE.test(value))
      throw new HoldError('invalid_argument', `not a header: ${name.slice(0, 40)}`)
    lines.push(`${name}: ${value}`)
  }
  if (body) lines.push(`Content-Length: ${body.length}`)
  // One byte per character: so are header values, and the rest has no others.
  return Uint8Array.from(lines.join('\r\n') + '\r\n\r\n', (each) => each.charCodeAt(0))
}

interface Header {
  status: number
  reason: string
  headers: Headers
  keeps: boolean // the connection, unless a header says otherwise
}

export async function readHead(reader: ByteReader): Promise<Header> {
  const first = /^HTTP\/1\.([01]) ([1-5]\d\d)(?: (.*))?$/.exec(await reader.line(LINE_BYTES))
  if (!first) throw spoilt('does not speak HTTP')
  const headers: Headers = []
  for (;;) {
    const line = await reader.line(LINE_BYTES)
    if (line === '') break
    const colon = line.indexOf(':')
    if (colon < 1 || headers.length >= HEADERS_MAX) throw spoilt('said a header that is none, or too many')
    headers.push([line.slice(0, colon).trim(), line.slice(colon + 1).trim()])
  }
  return { status: Number(first[2]), reason: first[3] ?? '', headers, keeps: first[1] === '1' }
}

export function header(headers: Headers, wanted: string): string | null {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? null
}

type Read = () => Promise<Uint8Array | null>

/** `bounded`: its end can be recognized without closing the connection. */
function bodyOf(reader: ByteReader, headers: Headers): { read: Read; bounded: boolean } {
  const chunks = header(headers, 'transfer-encoding')?.toLowerCase().includes('chunked')
  if (chunks) return { read: chunked(reader), bounded: true }
  const length = header(headers, 'content-length')
  if (length === null) return { read: () => reader.some(PIECE_BYTES), bounded: false }
  if (!/^\d{1,15}$/.test(length)) throw spoilt('said a length that is none')
  let left = Number(length)
  const read: Read = async () => {
    if (left === 0) return null
    const piece = await reader.some(Math.min(left, PIECE_BYTES))
    if (piece === null) throw spoilt('ended before all of its answer was there')
    left -= piece.length
    return piece
  }
  return { read, bounded: true }
}

function chunked(reader: ByteReader): Read {
  let left = 0
  let over = false
  return async () => {
    if (over) return null
    if (left === 0) {
      const size = /^([0-9a-fA-F]{1,12})\s*(?:;.*)?$/.exec(await reader.line(LINE_BYTES))
      if (!size) throw spoilt('said a chunk that is none')
      left = parseInt(size[1] as string, 16)
      if (left === 0) {
        over = true
        while ((await reader.line(LINE_BYTES)) !== '') continue // trailers say nothing that is used
        return null
      }
    }
    const piece = await reader.some(Math.min(left, PIECE_BYTES))
    if (piece === null) throw spoilt('ended before all of its answer was there')
    left -= piece.length
    if (left === 0 && (await reader.line(2)) !== '') throw spoilt('said more than its chunk has')
    return piece
  }
}
