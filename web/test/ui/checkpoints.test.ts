import { expect, test } from 'vitest'
import type { CheckpointInfo } from '../../src/hold/api'
import { SessionList } from '../../src/hold/session-list'
import { Checkpointing } from '../../src/ui/session/checkpointing'
import { madeText, notBack, reapingText } from '../../src/ui/text/checkpoints'
import { CHECKPOINTS, NOW, session } from './fixtures'

const [NEWER, OLDER] = CHECKPOINTS as [CheckpointInfo, CheckpointInfo]

test('a checkpoint says how large it is and how long the session stood still for it', () => {
  expect(madeText(NEWER)).toBe('12 MB · stood still for 34 ms')
})

test('what a restore could not bring back is named', () => {
  const report = {
    checkpoint: 'ck-7',
    epoch_before: 1,
    epoch: 2,
    phases: [],
    bytes: 1,
    kind: 'memory' as const,
    files: null,
  }
  expect(notBack({ ...report, reset: [], inputs_lost: 0 })).toBe('')
  const reset = [{ local: '10.0.0.1:5', peer: '10.0.0.2:22', pid: 7, process: 'ssh' }]
  expect(notBack({ ...report, reset, inputs_lost: 1 })).toBe(
    'connections reset: 10.0.0.2:22; 1 input came after the checkpoint',
  )
  const files = { put_back: 2, kept_in: ['/srv/.holdfast-kept/ck-7'], left: ['/x'], left_count: 1 }
  expect(notBack({ ...report, reset: [], inputs_lost: 0, files })).toBe(
    '2 files were put back, what was there instead is in /srv/.holdfast-kept/ck-7; ' +
      '1 file that differs was left',
  )
})

test('one checkpoint is made at a time, and the one that was made is the first of the list', async () => {
  let finish: (made: CheckpointInfo) => void = () => undefined
  const asked: string[] = []
  const desk = new Checkpointing({
    checkpoints: async () => [OLDER],
    checkpoint: (note, end) => {
      asked.push(`${note} ${end}`)
      return new Promise((resolve) => (finish = resolve))
    },
  })
  await desk.load()
  const first = desk.make(' before it ', false)
  expect(desk.since.value).not.toBeNull()
  expect(await desk.make('again', true)).toBeNull()
  finish(NEWER)
  expect(await first).toBe(NEWER)
  expect(asked).toEqual(['before it false'])
  expect(desk.known.value).toEqual([NEWER, OLDER])
  expect([desk.since.value, desk.made.value]).toEqual([null, NEWER])
})

test('a checkpoint that failed leaves the way free for another one', async () => {
  const refused = new Error('no room')
  const desk = new Checkpointing({
    checkpoints: () => Promise.reject(refused),
    checkpoint: () => Promise.reject(refused),
  })
  expect(await desk.make('', false)).toBeNull()
  expect(desk.failed.value).toBe(refused)
  expect(desk.since.value).toBeNull()
  await desk.load()
  expect(desk.known.value).toEqual([])
})

test('that a session is about to be reaped is shown until somebody uses it', () => {
  const list = new SessionList(() => new Promise(() => undefined))
  const info = session('old', {})
  list.listed([info])
  const known = () => list.known.value[0]!
  const about = { session: info.id, name: 'old', why: 'idle for 2h', at: NOW, due_at: NOW + 300 }
  list.onHostMessage({ t: 'reap_notice', step: 'warned', action: 'evict', ...about })
  expect(reapingText(known().reaping, NOW)).toBe('unused: put to sleep in 5m')
  list.listed([info])
  expect(known().reaping).not.toBeNull()
  const operators = { session: info.id, operators: 1, observers: 0, size: info.size, at: NOW }
  list.onHostMessage({ t: 'operators', ...operators })
  expect(reapingText(known().reaping, NOW)).toBe('')
})

test('how far a restore is, is known until it is over', () => {
  const list = new SessionList(() => new Promise(() => undefined))
  const info = session('big', {})
  list.listed([info])
  const known = () => list.known.value[0]!
  const told = { t: 'progress', session: info.id, name: 'big', work: 'restore', phase: 'load' } as const
  list.onHostMessage({ ...told, done: 5, total: 10, at: NOW, over: false })
  list.listed([info])
  expect(known().progress).toMatchObject({ work: 'restore', phase: 'load', done: 5, total: 10 })
  list.onHostMessage({ ...told, done: 10, total: 10, at: NOW, over: true })
  expect(known().progress).toBeNull()
})

test('a warning that nothing came of goes away', () => {
  const reaping = { action: 'end', why: 'idle', due_at: NOW }
  expect(reapingText(reaping, NOW)).toBe('unused: ended now')
  expect(reapingText(reaping, NOW + 120)).toBe('')
})
