import { expect, test } from 'vitest'
import type { ApprovalCard, ApprovalInfo, Contributor } from '../../src/hold/api'
import {
  partText,
  policyText,
  quorumText,
  risksOf,
  settledText,
  stagedText,
  waitsForYou,
  whyNot,
} from '../../src/ui/approval/approval-words'
import { hiddenText, piecesOf, spokenText } from '../../src/ui/approval/exact-text'
import { approvalNotices } from '../../src/ui/parts/notify-rules'
import { parse, path } from '../../src/ui/route'
import { MACHINE, NOW } from './fixtures'

const by = (name: string, change: Partial<Contributor> = {}): Contributor => ({
  actor: `${name}-id`,
  name,
  kind: 'agent',
  part: 'trigger',
  what: '',
  command: 0,
  ...change,
})

const info = (change: Partial<ApprovalInfo> = {}): ApprovalInfo => ({
  id: '1a2b3c4d',
  session: 's'.repeat(26),
  name: 'migrate',
  kind: 'line',
  text: 'psql -f drop.sql',
  actor: 'otto',
  contributors: [by('otto')],
  reason: 'writes to production',
  policy: 'label:prod',
  quorum: 1,
  approved_by: [],
  asked_at: NOW - 10,
  expires_at: NOW + 290,
  status: 'pending',
  changed: [],
  approvers: [],
  text_known: true,
  cwd: '/srv/api',
  user: 'ci',
  workspace: '/srv/api',
  changes_known: true,
  version: '9c01d2aa7b3e5f04',
  ...change,
})

const ME = { ...MACHINE, rights: ['approve', 'observe'] }
const card = (change: Partial<ApprovalInfo> = {}, more: Partial<ApprovalCard> = {}): ApprovalCard => ({
  machine: MACHINE.key,
  machineName: MACHINE.name,
  link: 'online',
  info: info(change),
  by: '',
  note: '',
  ...more,
})

test('spaces, tabs and line ends are drawn, and what does not show has its name', () => {
  const pieces = piecesOf('rm  a\t\u200bb\u202e\r\n\u00a0é')
  expect(
    pieces.map((one) => (one.kind === 'text' ? one.text : one.kind === 'named' ? one.code : one.kind)),
  ).toEqual(['rm', 'space', 'space', 'a', 'tab', 'U+200B', 'b', 'U+202E', 'U+000D', 'end', 'U+00A0', 'é'])
  expect(hiddenText(pieces)).toBe(
    '4 invisible characters: zero-width space, right-to-left override, carriage return, no-break space',
  )
  expect(spokenText(piecesOf('a\u200bb\n'))).toBe('a (zero-width space, U+200B) b (line end) ')
  expect(hiddenText(piecesOf('日本語 🙂 é e\u0301 ü'))).toBe('')
})

test.each([
  0x00, 0x1b, 0x7f, 0x9b, 0xad, 0x034f, 0x061c, 0x115f, 0x180e, 0x2028, 0x2800, 0x3164, 0xfe0f, 0xfeff,
  0xe0041,
])('U+%s is not taken for nothing', (point) => {
  expect(piecesOf(`a${String.fromCodePoint(point)}b`)[1]?.kind).toBe('named')
})

test('nobody is asked to approve what is their own, or what they may not', () => {
  expect(whyNot(info(), ME)).toBe('')
  expect(whyNot(info(), { ...ME, rights: ['observe'] })).toContain('does not include approving')
  expect(whyNot(info({ actor: ME.actor }), ME)).toContain('their own')
  const part = by('x', { actor: ME.actorId, part: 'state' })
  expect(whyNot(info({ contributors: [by('otto'), part] }), ME)).toContain('their own')
  expect(whyNot(info({ approvers: ['jonas'] }), ME)).toBe('only jonas may decide about it')
  expect(whyNot(info({ approvers: [ME.actor] }), ME)).toBe('')
  expect(whyNot(info({ approvers: ['human'] }), ME)).toBe('')
  expect(whyNot(info({ approvers: ['service'] }), ME)).toContain('only service')
  expect(waitsForYou(card(), ME)).toBe(true)
  expect(waitsForYou(card({ quorum: 2, approved_by: [ME.actor] }), ME)).toBe(false)
  expect(waitsForYou(card({ status: 'denied' }), ME)).toBe(false)
})

test('reasons to read closely are said', () => {
  expect(risksOf(info())).toEqual([])
  expect(
    risksOf(
      info({
        text: 'a\u200b',
        contributors: [by('otto'), by('eve', { part: 'shaped' })],
        changed: ['PATH: x', 'output: 3 bytes'],
      }),
    ),
  ).toEqual([
    'invisible characters',
    'another had a part in it',
    'the shell does not say what it holds',
    'changed since it was asked',
  ])
  expect(risksOf(info({ text: '', text_known: false }))).toEqual(['the shell does not say what it is'])
  expect(risksOf(info({ changes_known: false, changed: ['output: 3 bytes'] }))).toEqual([
    'what changed is not known',
  ])
  expect(partText(by('otto', { part: 'state', what: 'var:PATH' }))).toBe('set the variable PATH')
  expect(partText(by('otto', { part: 'file', what: 'file:/tmp/a:b' }))).toBe('wrote /tmp/a:b')
})

test('whose policy holds it is said in words', () => {
  expect(policyText('host')).toBe('the policy of this host')
  expect(policyText('label:prod writes')).toBe('the policy of label prod (writes)')
  expect(policyText('session:hold-destructive')).toBe('the policy of this session (hold-destructive)')
  expect(policyText('')).toBe('a policy')
})

test('it is said how it was settled, by whom and with which words', () => {
  expect(quorumText(info({ quorum: 2, approved_by: ['jonas'] }))).toBe('1 of 2 approved')
  expect(settledText(card({ status: 'approved', approved_by: ['jonas', 'me'] }), 'me')).toBe(
    'Approved by jonas and you',
  )
  expect(settledText(card({ status: 'denied' }, { by: 'jonas', note: 'not on Friday' }), 'me')).toBe(
    'Denied by jonas: “not on Friday”',
  )
  expect(settledText(card({ status: 'expired' }), 'me')).toContain('nobody decided')
})

test('a notification has the exact command and leads to it; what is for others notifies nobody', () => {
  const [notice, ...more] = approvalNotices([], [card(), card({ id: 'other', actor: ME.actor })], [ME])
  expect(more).toEqual([])
  expect(notice).toMatchObject({ body: 'psql -f drop.sql', path: `/m/${MACHINE.name}/a/1a2b3c4d` })
  expect(notice?.title).toBe(`otto wants to run this in migrate on ${MACHINE.name}`)
  expect(approvalNotices([card()], [card()], [ME])).toEqual([])
  const parts = [by('otto'), by('otto', { part: 'typed' }), by('jonas', { part: 'state', what: 'var:PATH' })]
  expect(stagedText(info({ contributors: parts }))).toBe('jonas set the variable PATH')
  expect(approvalNotices([], [card({ contributors: parts })], [ME])[0]?.body).toBe(
    'psql -f drop.sql\njonas set the variable PATH',
  )
  expect(approvalNotices([], [card({ text: '', text_known: false })], [ME])[0]?.body).toContain(
    'does not say',
  )
  const at = { page: 'approval', machine: 'a b', approval: '1a2b3c4d' } as const
  expect(parse(path(at))).toEqual(at)
})
