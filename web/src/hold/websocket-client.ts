// A WebSocket (RFC 6455) over a connection to a port, for pages that are shown from a session: the client's end of the
// handshake and of the frames. No extensions are asked for, so none can be answered with.

import { concat, utf8 } from '../wire/bytes'
import { HoldError } from '../wire/errors'
import { ByteReader, spoilt } from './byte-reader'
import type { ByteStream } from './port-forward'
import { encodeHead, header, type Headers, readHead } from './http-client'

const MESSAGE_MAX_BYTES = 64 << 20
const CONTINUATION = 0
const TEXT = 1
const BINARY = 2
const CLOSE = 8
const PING = 9
const PONG = 10
const ENDING = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

type SocketMessage = string | Uint8Array

interface SocketEnd {
  code: number
  reason: string
  clean: boolean
}

export class SocketClient {
  private closing = false

  private constructor(
    private readonly stream: ByteStream,
    private readonly reader: ByteReader,
    readonly protocol: string,
  ) {}

  static async open(
    stream: ByteStream,
    path: string,
    host: string,
    protocols: string[],
    headers: Headers,
  ): Promise<SocketClient> {
    const key = base64(crypto.getRandomValues(new Uint8Array(16)))
    const more: Headers = [
      ['Upgrade', 'websocket'],
      ['Sec-WebSocket-Version', '13'],
      ['Sec-WebSocket-Key', key],
    ]
    if (protocols.length) more.push(['Sec-WebSocket-Protocol', protocols.join(', ')])
    await stream.write(encodeHead({ method: 'GET', path, host, headers, body: null }, 'Upgrade', more))
    const reader = new ByteReader(stream)
    const answer = await readHead(reader)
    const accepted = base64(
      new Uint8Array(await crypto.subtle.digest('SHA-1', utf8(key + ENDING) as BufferSource)),
    )
    if (answer.status !== 101 || header(answer.headers, 'sec-websocket-accept') !== accepted) {
      throw new HoldError(
        'connection_reset',
        `the program at the port answered ${answer.status} to a WebSocket`,
      )
    }
    return new SocketClient(stream, reader, header(answer.headers, 'sec-websocket-protocol') ?? '')
  }

  send(message: SocketMessage): Promise<void> {
    return typeof message === 'string' ? this.frame(TEXT, utf8(message)) : this.frame(BINARY, message)
  }

  close(code: number, reason: string): void {
    if (this.closing) return
    this.closing = true
    const body =
      code === 1005 ? new Uint8Array(0) : concat(new Uint8Array([code >> 8, code & 255]), utf8(reason))
    this.frame(CLOSE, body).catch(() => undefined)
  }

  abort(): void {
    this.stream.abort()
  }

  /** Each message as it comes, then how it ended. */
  async run(onMessage: (message: SocketMessage) => void | Promise<void>): Promise<SocketEnd> {
    let kind = CONTINUATION
    let parts: Uint8Array[] = []
    let size = 0
    for (;;) {
      const { opcode, final, body } = await this.next()
      if (opcode === CLOSE) return this.closed(body)
      if (opcode === PING) await this.frame(PONG, body)
      if (opcode >= CLOSE) continue
      if ((opcode === CONTINUATION) !== parts.length > 0) throw spoilt('mixed two messages')
      if (opcode !== CONTINUATION) kind = opcode
      parts.push(body)
      size += body.length
      if (size > MESSAGE_MAX_BYTES) throw spoilt('sent a message that is too long')
      if (!final) continue
      const whole = concat(...parts)
      parts = []
      size = 0
      await onMessage(kind === TEXT ? new TextDecoder().decode(whole) : whole)
    }
  }

  private async next(): Promise<{ opcode: number; final: boolean; body: Uint8Array }> {
    const [first, second] = (await this.reader.exactly(2)) as unknown as [number, number]
    if (first & 0x70 || second & 0x80) throw spoilt('sent a frame that no server may')
    let size = second & 0x7f
    if (size >= 126) {
      const longer = await this.reader.exactly(size === 126 ? 2 : 8)
      size = longer.reduce((sum, byte) => sum * 256 + byte, 0)
    }
    if (size > MESSAGE_MAX_BYTES) throw spoilt('sent a frame that is too long')
    return { opcode: first & 0x0f, final: (first & 0x80) !== 0, body: await this.reader.exactly(size) }
  }

  private closed(body: Uint8Array): SocketEnd {
    const code = body.length >= 2 ? (body[0] as number) * 256 + (body[1] as number) : 1005
    const reason = new TextDecoder().decode(body.subarray(2))
    this.close(code, '')
    this.stream.end()
    return { code, reason, clean: true }
  }

  private frame(opcode: number, body: Uint8Array): Promise<void> {
    const size = body.length
    const head = [0x80 | opcode]
    if (size < 126) head.push(0x80 | size)
    else if (size < 65536) head.push(0x80 | 126, size >> 8, size & 255)
    else {
      head.push(0x80 | 127)
      for (let at = 7; at >= 0; at--) head.push(Math.floor(size / 2 ** (8 * at)) & 255)
    }
    const mask = crypto.getRandomValues(new Uint8Array(4))
    const masked = body.map((byte, at) => byte ^ (mask[at & 3] as number))
    return this.stream.write(concat(new Uint8Array(head), mask, masked))
  }
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}
