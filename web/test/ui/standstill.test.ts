import { expect, test } from 'vitest'
import type { Ending, LinkState } from '../../src/hold/api'
import { standstill } from '../../src/ui/text/standstill'
import { CHECKPOINTS, COMMANDS, NOW, session } from './fixtures'

const FENCED: LinkState = {
  at: 'fenced',
  trouble: { code: 'fenced', message: '', hint: '', retryable: true },
}
const lease = { state: 'fenced', length_s: 30, left_s: 0, later_epoch: 0, why: '' }
const words = (...of: Parameters<typeof standstill>): Record<string, string> =>
  Object.fromEntries(standstill(...of))

test('what its host last wrote down is said with its age, and how to start one that follows it', () => {
  const ending = {
    code: null,
    signal: null,
    lost: 'its host died',
    cause: null,
    successor: '',
    moved_to: '',
    checkpoint: '',
  }
  const last_known = {
    at: NOW - 68,
    state: 'working' as const,
    cwd: '/srv/api',
    environment: [],
    jobs: ['running sleep 100'],
    held: [{ id: 'a1', text: 'rm -rf old', actor: 'claude' }],
    present: [],
    holder: '',
  }
  const said = words({ at: 'ended', ending }, session('x', { last_known, ended_at: NOW - 60 }), 'build-1')
  expect(Object.keys(said)).toEqual(['Survived', 'It was', 'Gone', 'Unknown', 'Not done', 'Next'])
  expect(said['It was']).toBe('working in /srv/api; with jobs: running sleep 100, 8s before it was lost.')
  expect(said['Not done']).toContain('rm -rf old')
  expect(said.Next).toContain('`hold revive x`')
})

test('a fenced session says that nothing runs twice and how it goes on', () => {
  const said = words(FENCED, session('x', { lease }), 'build-1')
  expect(said.Safe).toMatch(/frozen.*nothing runs twice/)
  expect(said.Next).toMatch(/goes on by itself when build-1 holds the lease again/)
  expect(words(FENCED, null, 'build-1')).toEqual(said)
  const why = 'its record cannot be written'
  expect(words(FENCED, session('x', { lease: { ...lease, why } }), 'build-1').Next).toContain(why)
})

test('one that another host took says so, and does not promise to go on here', () => {
  const taken = session('x', { lease: { ...lease, state: 'taken', later_epoch: 8 } })
  const said = words(FENCED, taken, 'build-1')
  expect(said.Next).toMatch(/Another host has the session in epoch 8/)
  expect(said.Next).not.toContain('by itself')
})

test('a lost session says what survived, what is gone, and what nobody knows', () => {
  const ending = {
    code: null,
    signal: null,
    lost: 'its keeper died',
    cause: null,
    successor: 'api-2',
    moved_to: '',
    checkpoint: '',
  }
  const in_flight = {
    command: { ...COMMANDS[0]!, text: 'make deploy', actor: 'claude' },
    inputs: [],
    unsubmitted: '',
    unsubmitted_by: [],
  }
  const said = words({ at: 'ended', ending }, session('x', { in_flight }), 'build-1')
  expect(Object.keys(said)).toEqual(['Survived', 'Gone', 'Unknown', 'Next'])
  expect(said.Unknown).toContain('make deploy by claude')
  expect(said.Next).toContain('followed by api-2')
  expect(standstill({ at: 'ended', ending: { ...ending, lost: null, code: 0 } }, null, 'b')).toEqual([])
  expect(standstill({ at: 'online' }, session('x', {}), 'b')).toEqual([])
})

test('a lost session with a checkpoint can be brought back, without what came after it', () => {
  const cause = { kind: 'host_lost', checkpoint: 'c7' } as unknown as Ending['cause']
  const ending = {
    code: null,
    signal: null,
    lost: 'its host died',
    cause,
    successor: '',
    checkpoint: '',
    moved_to: '',
  }
  const said = words({ at: 'ended', ending }, session('x', {}), 'build-1')
  expect(said.Survived).toContain('its last checkpoint')
  expect(said.Gone).toContain('after that checkpoint')
  expect(said.Next).toContain('`hold restore x`')
})

const ASLEEP: Ending = {
  code: null,
  signal: null,
  lost: null,
  cause: null,
  successor: '',
  moved_to: '',
  checkpoint: 'ck-7',
}
const WAY = { restores: true, revives: true, checkpoint: CHECKPOINTS[0]!, now: NOW }

test('a session that is asleep says since when, by whom and how large, and what waking does not bring back', () => {
  const link: LinkState = { at: 'ended', ending: ASLEEP }
  const said = Object.fromEntries(standstill(link, session('x', { state: 'asleep' }), 'b', WAY))
  expect(said.Checkpoint).toBe('Made 5m ago by mara-laptop: “before the upgrade”, 12 MB.')
  expect(said.Gone).toContain('Connections to other machines')
  expect(said.Next).toContain('Wake brings it back here, under the same id')
  const watching = Object.fromEntries(
    standstill(link, session('x', {}), 'b', { ...WAY, restores: false, checkpoint: null }),
  )
  expect(watching.Checkpoint).toBeUndefined()
  expect(watching.Next).toContain('`hold restore x`')
})

test('where a lost session can be restored from here, it says what each button brings back', () => {
  const cause = { kind: 'host_lost', checkpoint: 'ck-7' } as unknown as Ending['cause']
  const link: LinkState = { at: 'ended', ending: { ...ASLEEP, lost: 'its host died', checkpoint: '', cause } }
  const said = Object.fromEntries(standstill(link, session('x', {}), 'b', WAY))
  expect(said.Checkpoint).toContain('12 MB')
  expect(said.Next).toMatch(/^Restore brings its processes back as they were then.*Start a successor/)
  const only = Object.fromEntries(standstill(link, session('x', {}), 'b', { ...WAY, revives: false }))
  expect(only.Next).not.toContain('successor')
})
