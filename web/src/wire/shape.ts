// The shape that data from outside must have, declared once: it gives the check and the type. Types are strict, unknown
// fields are ignored, a missing field takes its default if it has one (docs/protocol.md, *Frames*).

import { violation } from './errors'
import { isMap, unpackMap } from './msgpack'

export interface Shape<T> {
  read(value: unknown, where: string): T
  readonly fallback?: () => T
}

export type Value<S> = S extends Shape<infer T> ? T : never

function shape<T>(kind: string, holds: (value: unknown) => boolean): Shape<T> {
  return {
    read(value, where) {
      if (!holds(value)) throw violation(`${where} is not ${kind}`)
      return value as T
    },
  }
}

export const text = shape<string>('text', (value) => typeof value === 'string')
export const int = shape<number>('an int', (value) => Number.isSafeInteger(value))
export const float = shape<number>('a number', (value) => typeof value === 'number')
export const bool = shape<boolean>('true or false', (value) => typeof value === 'boolean')
export const bytes = shape<Uint8Array>('bytes', (value) => value instanceof Uint8Array)

/** Names of states, kinds and colours: a later version may add some, so any text is accepted. */
export function openEnum<T extends string>(): Shape<T> {
  return text as unknown as Shape<T>
}

export function list<T>(of: Shape<T>): Shape<T[]> {
  return {
    read(value, where) {
      if (!Array.isArray(value)) throw violation(`${where} is not a list`)
      return value.map((each, at) => of.read(each, `${where}[${at}]`))
    },
  }
}

export function map<T>(of: Shape<T>): Shape<Record<string, T>> {
  return {
    read(value, where) {
      if (!isMap(value)) throw violation(`${where} is not a map`)
      return Object.fromEntries(
        Object.entries(value).map(([key, each]) => [key, of.read(each, `${where}.${key}`)]),
      )
    },
  }
}

export function nullable<T>(of: Shape<T>): Shape<T | null> {
  return { read: (value, where) => (value === null ? null : of.read(value, where)) }
}

/** A field with a default. */
export function withDefault<T>(of: Shape<T>, fallback: NoInfer<T>): Shape<T> {
  return { read: of.read, fallback: () => (Array.isArray(fallback) ? ([...fallback] as T) : fallback) }
}

/** Null, and null when it is missing. */
export function optional<T>(of: Shape<T>): Shape<T | null> {
  return withDefault<T | null>(nullable(of), null)
}

type Fields = Record<string, Shape<unknown>>
type Read<F extends Fields> = { [K in keyof F]: Value<F[K]> }

export function record<F extends Fields>(fields: F): Shape<Read<F>> {
  const entries = Object.entries(fields)
  return {
    read(value, where) {
      if (!isMap(value)) throw violation(`${where} is not a map`)
      const made: Record<string, unknown> = {}
      for (const [name, of] of entries) {
        const found = value[name]
        if (found !== undefined) made[name] = of.read(found, `${where}.${name}`)
        else if (of.fallback) made[name] = of.fallback()
        else throw violation(`${where}.${name} is missing`)
      }
      return made as Read<F>
    },
  }
}

type Messages = Readonly<Record<string, Shape<object>>>

/** A message of a table, with its tag. */
export type MessageOf<M extends Messages, T extends keyof M = keyof M> = {
  [K in T]: { t: K } & Value<M[K]>
}[T]

function readMessage<M extends Messages>(
  messages: M,
  fields: ReturnType<typeof unpackMap>,
): MessageOf<M> | null {
  const shape = Object.hasOwn(messages, fields.t) ? messages[fields.t] : undefined
  return shape
    ? (Object.assign(shape.read(fields, fields.t), { t: fields.t }) as unknown as MessageOf<M>)
    : null
}

/** Reads one message of a table from its bytes. */
export function decoder<M extends Messages>(messages: M, sender: string): (body: Uint8Array) => MessageOf<M> {
  return (body) => {
    const fields = unpackMap(body)
    const message = readMessage(messages, fields)
    if (!message) throw violation(`a ${sender} sent ${fields.t}, which is not for this client`)
    return message
  }
}

/** The same; null for what is not in the table and answers nothing: its sender is newer, and tells more. */
export function eventDecoder<M extends Messages>(
  messages: M,
  sender: string,
): (body: Uint8Array) => MessageOf<M> | null {
  return (body) => {
    const fields = unpackMap(body)
    const message = readMessage(messages, fields)
    if (!message && 'id' in fields) throw violation(`a ${sender} answered ${fields.t}, which is not known`)
    return message
  }
}
