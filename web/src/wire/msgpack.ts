// msgpack as the protocol uses it: one map, with a text under `t` that names the message.

import { Decoder, Encoder } from '@msgpack/msgpack'
import { violation } from './errors'

const encoder = new Encoder({ ignoreUndefined: true, initialBufferSize: 4096 })
const decoder = new Decoder()

/** A copy: it may be kept. */
export function pack(value: unknown): Uint8Array {
  return encoder.encode(value)
}

/** Bytes in it are views of the input. */
export function unpack(body: Uint8Array): unknown {
  try {
    return decoder.decode(body)
  } catch (error) {
    throw violation(`not a message: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value)
}

export function unpackMap(body: Uint8Array): Record<string, unknown> & { t: string } {
  const fields = unpack(body)
  if (!isMap(fields) || typeof fields.t !== 'string') throw violation('not a message')
  return fields as Record<string, unknown> & { t: string }
}
