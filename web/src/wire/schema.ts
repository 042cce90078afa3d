// What a value from outside must look like, said once: from it come the check and the type. Types are strict, unknown
// fields are ignored, a missing field takes its default if it has one (docs/protocol.md, *Frames*).

import { violation } from './errors'

export interface Shape<T> {
  read(value: unknown, where: string): T
  readonly fallback?: () => T
  readonly fields?: Readonly<Record<string, Shape<unknown>>> // of a map, for who compares it with the documents
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

export function named<T extends string>(): Shape<T> {
  // Names of states, kinds and colours: a later version may add some, so any text is taken.
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

export const texts = list(text)
export const ints = list(int)

export const textMap: Shape<Record<string, string>> = {
  read(value, where) {
    if (!isMap(value)) throw violation(`${where} is not a map`)
    for (const each of Object.values(value)) text.read(each, where)
    return value as Record<string, string>
  },
}

export function nullable<T>(of: Shape<T>): Shape<T | null> {
  return { read: (value, where) => (value === null ? null : of.read(value, where)) }
}

/** A field with a default. */
export function or<T>(of: Shape<T>, fallback: T): Shape<T> {
  return { read: of.read, fallback: () => (Array.isArray(fallback) ? ([...fallback] as T) : fallback) }
}

/** nil, and nil when it is missing. */
export function maybe<T>(of: Shape<T>): Shape<T | null> {
  return or(nullable(of), null)
}

type Fields = Record<string, Shape<unknown>>
export type Read<F extends Fields> = { [K in keyof F]: Value<F[K]> }

export function record<F extends Fields>(fields: F): Shape<Read<F>> {
  const entries = Object.entries(fields)
  return {
    fields,
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

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value)
}
