// What a page says of a session that moves to another host.

import { expect, test } from 'vitest'
import type { SessionInfo } from '../../src/hold/api'
import { SessionList } from '../../src/hold/session-list'
import { movingOf, movingText, stepsOf } from '../../src/ui/text/moving'
import { standstill } from '../../src/ui/text/standstill'
import { stateAfter } from '../../src/hold/state-event'
import { NOW, session } from './fixtures'

const move = { phase: 'transfer', state: 'transfer', leaves: true, host: 'db-2', reason: '' }

test('a move is said with its phase and the other host, and is over without a phase', () => {
  expect(movingText(move)).toBe('Moving to db-2: copying')
  expect(movingText({ ...move, leaves: false, phase: 'restore' })).toBe('Coming from db-2: starting there')
  expect(movingText({ ...move, reason: 'no room' })).toBe('Moving to db-2 failed: it goes back')
  expect(movingText({ ...move, phase: 'later' })).toBe('Moving to db-2')
  expect(movingOf(session('x', { migration: move }))).toEqual(move)
  expect(movingOf(session('x', { migration: { ...move, phase: '' } }))).toBeNull()
  expect(movingOf(session('x', {}))).toBeNull()
})

test('its phases are done, now or to come', () => {
  expect(stepsOf(move).map(({ is }) => is)).toEqual([
    'done',
    'now',
    'to come',
    'to come',
    'to come',
    'to come',
  ])
  expect(stepsOf({ phase: 'later' }).every(({ is }) => is === 'to come')).toBe(true)
})

test('an event of a move changes what is known of the session', () => {
  const list = new SessionList(() => new Promise(() => undefined))
  const info = session('backfill', {})
  list.listed([info])
  const about = { session: info.id, name: info.name, at: NOW, host: 'db-2', leaves: true, reason: '' }
  list.onHostMessage({ t: 'migration', phase: 'cutover', superposition: 'dual-active', ...about })
  const known = (): SessionInfo => list.known.value[0]!.info
  expect([known().superposition, known().migration?.phase]).toEqual(['dual-active', 'cutover'])
  list.onHostMessage({ t: 'migration', phase: '', superposition: 'settled', ...about })
  expect(movingOf(known())).toBeNull()
})

test('what moved away says where it goes on', () => {
  const gone = {
    code: null,
    signal: null,
    lost: null,
    cause: null,
    successor: '',
    checkpoint: 'ck',
    moved_to: 'db-2',
  }
  const facts = Object.fromEntries(standstill({ at: 'ended', ending: gone }, session('x', {}), 'build-1'))
  expect(facts.Next).toContain('db-2')
  expect(stateAfter(gone)).not.toBe('lost')
})
