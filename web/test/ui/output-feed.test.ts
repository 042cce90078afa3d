import { expect, test } from 'vitest'
import {
  BACKLOG_MAX_BYTES,
  CALM_BYTES,
  DRAWING_BYTES,
  OutputFeed,
  PIECE_BYTES,
} from '../../src/ui/terminal/output-feed'

/** A terminal that draws when it is told to. */
class SlowSink {
  readonly steps: string[] = []
  private waiting: (() => void)[] = []
  taken = 0
  write(data: Uint8Array, done: () => void): void {
    expect(data.length).toBeLessThanOrEqual(PIECE_BYTES)
    this.steps.push(new TextDecoder().decode(data.subarray(0, 8)))
    this.taken += data.length
    this.waiting.push(done)
  }
  get busy(): boolean {
    return this.waiting.length > 0
  }
  draw(): void {
    const done = this.waiting
    this.waiting = []
    for (const each of done) each()
  }
  drawAll(): void {
    while (this.busy) this.draw()
  }
}

function make() {
  const sink = new SlowSink()
  const asked: number[] = []
  const feed = new OutputFeed(sink, () => asked.push(1))
  return { sink, asked, feed }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const many = (size: number): Uint8Array => new Uint8Array(size).fill(97)

test('output is drawn in order', () => {
  const { sink, feed } = make()
  for (const text of ['one', 'two', 'three']) feed.live(bytes(text))
  sink.drawAll()
  expect(sink.steps).toEqual(['one', 'two', 'three'])
  expect(feed.backlog).toBe(0)
})

test('the terminal is never given more than a few pieces at once', () => {
  const { sink, feed } = make()
  feed.live(many(2 * 1024 * 1024))
  expect(sink.taken).toBeLessThanOrEqual(DRAWING_BYTES)
  sink.drawAll()
  expect(sink.taken).toBe(2 * 1024 * 1024)
})

test('the sender is held back until most of it is drawn', async () => {
  const { sink, feed } = make()
  expect(feed.live(many(1000))).toBeUndefined()
  let free = false
  void Promise.resolve(feed.live(many(CALM_BYTES))).then(() => (free = true))
  await Promise.resolve()
  expect(free).toBe(false)
  sink.drawAll()
  await new Promise((resolve) => setTimeout(resolve))
  expect(free).toBe(true)
})

test('past the limit the rest is dropped, and the screen is asked for once when all is drawn', () => {
  const { sink, asked, feed } = make()
  for (let n = 0; n < 100; n += 1) void feed.live(many(1024 * 1024))
  expect(feed.backlog).toBeLessThanOrEqual(BACKLOG_MAX_BYTES)
  expect(asked).toEqual([])
  sink.drawAll()
  expect(asked).toEqual([1])
  void feed.live(bytes('still dropped'))
  expect(sink.busy).toBe(false)
})

test('a screen takes the place of all that was not drawn yet', () => {
  const { sink, feed } = make()
  void feed.live(many(1024 * 1024))
  void feed.resync(bytes('screen'), () => sink.steps.push('prepared'))
  void feed.live(bytes('after'))
  sink.drawAll()
  expect(sink.steps.slice(-3)).toEqual(['prepared', 'screen', 'after'])
  expect(sink.taken).toBeLessThan(DRAWING_BYTES + 100)
})

test('the terminal is made ready for a screen only when the old one is drawn', () => {
  const { sink, feed } = make()
  void feed.live(bytes('old'))
  void feed.resync(bytes('new'), () => sink.steps.push('prepared'))
  expect(sink.steps).toEqual(['old'])
  sink.draw()
  expect(sink.steps).toEqual(['old', 'prepared', 'new'])
})

test('output goes on after a screen that was asked for', () => {
  const { sink, asked, feed } = make()
  for (let n = 0; n < 10; n += 1) void feed.live(many(1024 * 1024))
  sink.drawAll()
  expect(asked).toEqual([1])
  void feed.resync(bytes('screen'), () => undefined)
  void feed.live(bytes('more'))
  sink.drawAll()
  expect(sink.steps.slice(-2)).toEqual(['screen', 'more'])
})

test('a feed that is closed releases its waiters', async () => {
  const { feed } = make()
  const held = feed.live(many(CALM_BYTES))
  feed.close()
  await held
})
