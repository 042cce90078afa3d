// Sealing and opening with the browser's arithmetic, whose small pieces are done in the page: both are the same cipher.
import { expect, test } from 'vitest'
import { nobleCrypto } from '../src/hold/crypto-noble'
import { webCrypto } from '../src/hold/crypto-web'
import { equal, utf8 } from '../src/wire/bytes'
import { nonceOf } from '../src/wire/crypto'

const KEY = new Uint8Array(32).fill(7)
const BOUND = utf8('bound')

test.each([0, 1, 100, 2031, 2032, 2047, 2048, 65_000])('%i bytes', async (size) => {
  const plain = Uint8Array.from({ length: size }, (_, at) => at & 0xff)
  const [web, noble] = [await webCrypto.aead(KEY), await nobleCrypto.aead(KEY)]
  const recordLayer = await web.seal(nonceOf(size), plain, BOUND)
  expect(equal(recordLayer, await noble.seal(nonceOf(size), plain, BOUND))).toBe(true)
  expect(equal((await web.open(nonceOf(size), recordLayer, BOUND))!, plain)).toBe(true)
  expect(await web.open(nonceOf(size + 1), recordLayer, BOUND)).toBeNull()
  recordLayer[0]! ^= 1
  expect(await web.open(nonceOf(size), recordLayer, BOUND)).toBeNull()
})
