// Bytes: put together, compared, and as text. Numbers are big endian, as everywhere in the protocol; those of 8 bytes
// are numbers of JavaScript, which are exact up to 2^53: no counter here gets there.

const utf8Writer = new TextEncoder()

export function concat(...parts: Uint8Array[]): Uint8Array {
  let size = 0
  for (const part of parts) size += part.length
  const whole = new Uint8Array(size)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function equal(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false
  let different = 0
  for (let at = 0; at < one.length; at++) different |= (one[at] as number) ^ (other[at] as number)
  return different === 0
}

export function utf8(text: string): Uint8Array {
  return utf8Writer.encode(text)
}

/** A text that opens something signed or hashed, with its zero byte. */
export function domain(text: string): Uint8Array {
  return utf8(`${text}\0`)
}

export function u64(value: number): Uint8Array {
  const bytes = new Uint8Array(8)
  writeU64(bytes, 0, value)
  return bytes
}

function writeU64(bytes: Uint8Array, at: number, value: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  view.setUint32(at, Math.floor(value / 0x1_0000_0000))
  view.setUint32(at + 4, value >>> 0)
}

export function readU32(bytes: Uint8Array, at: number): number {
  return new DataView(bytes.buffer, bytes.byteOffset).getUint32(at)
}

export function readU64(bytes: Uint8Array, at: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  return view.getUint32(at) * 0x1_0000_0000 + view.getUint32(at + 4)
}

export function hex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0')
  return text
}

export function unhex(text: string): Uint8Array {
  if (!/^([0-9a-f]{2})*$/.test(text)) throw new Error('not hexadecimal')
  const bytes = new Uint8Array(text.length / 2)
  for (let at = 0; at < bytes.length; at++) bytes[at] = parseInt(text.slice(at * 2, at * 2 + 2), 16)
  return bytes
}

/** base64 with `-` and `_`, without `=`. */
export function base64url(bytes: Uint8Array): string {
  let raw = ''
  for (const byte of bytes) raw += String.fromCharCode(byte)
  return btoa(raw).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** null when it is not such a text. One form only: what another text would decode to as well is refused. */
export function fromBase64url(text: string): Uint8Array | null {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) return null
  let raw: string
  try {
    raw = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  } catch {
    return null
  }
  const bytes = new Uint8Array(raw.length)
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at)
  return base64url(bytes) === text ? bytes : null
}
