import { expect, test } from 'vitest'
import type { BlameLine } from '../../src/hold/api'
import { isName, tidyName } from '../../src/ui/join/device-name'
import { errorText } from '../../src/ui/pages/error-texts'
import { qrPath } from '../../src/ui/parts/qr'
import { parse, path } from '../../src/ui/route'
import { findCommand, locate } from '../../src/ui/session/find-command'
import { processRows } from '../../src/ui/session/process-tree'
import { quickAnswers } from '../../src/ui/session/quick-answers'
import { GRAPH } from './fixtures'

test('addresses lead to pages and back', () => {
  for (const address of ['/', '/i', '/m/work%20bench/s/a%2Fb']) expect(path(parse(address))).toBe(address)
  expect(parse('/m/box/s/build')).toEqual({ page: 'session', machine: 'box', session: 'build' })
  for (const bad of ['/m/box', '/m/%ff/s/x', '/else']) expect(parse(bad).page).toBe('lost')
})

test('every code of a join and of a refusal has a page that says what to do', () => {
  const codes = [
    'bad_link',
    'wrong_relay',
    'expired',
    'used',
    'invalid',
    'unreachable',
    'other',
    'actor_revoked',
  ]
  codes.push(
    'grant_revoked',
    'grant_expired',
    'not_permitted',
    'no_such_session',
    'session_ended',
    'fenced',
    'offline',
    'new_code',
  )
  for (const code of codes) {
    const page = errorText(code)
    expect(page.title.length * page.todo.length).toBeGreaterThan(0)
  }
  expect(errorText('grant_revoked').code).toBe('revoked')
  expect(errorText('new_code').code).toBe('other')
})

test('names of devices are brought to the rule of the host', () => {
  expect(tidyName('  my phone ')).toBe('my-phone')
  expect([isName('my-phone'), isName('-x'), isName(''), isName('a'.repeat(65))]).toEqual([
    true,
    false,
    false,
    false,
  ])
})

test('a process whose parent is hidden is still in the tree', () => {
  const rows = processRows(GRAPH)
  expect(rows.map((row) => [row.process.pid, row.depth])).toEqual([
    [4100, 0],
    [4410, 1],
    [4502, 1],
    [4503, 2],
    [4560, 3],
    [4562, 3],
  ])
  expect(rows[1]?.ports).toEqual([':3000'])
  const orphans = { ...GRAPH, processes: GRAPH.processes.filter((one) => one.pid !== 4502) }
  expect(processRows(orphans).map((row) => row.process.pid)).toContain(4503)
})

test('processes are programs with their arguments, without what holdfast adds to start them', () => {
  const [shell] = GRAPH.processes
  const init = { ...shell!, pid: 4099, name: 'hold-init', argv: ['hold-init', '--', 'bash'] }
  const script = '/opt/lib/holdfast/shells/bash.sh'
  const bash = { ...shell!, ppid: 4099, argv: ['/usr/bin/bash', '--posix', '--init-file', script] }
  const fish = {
    ...bash,
    pid: 4101,
    argv: ['fish', '--init-command', `source '/x/holdfast/shells/fish.fish'`],
  }
  const theirs = { ...bash, pid: 4102, argv: ['bash', '--init-file', '/home/a/bash.sh'] }
  const rows = processRows({ ...GRAPH, root: 4099, processes: [init, bash, fish, theirs] }, [
    'bash',
    '--norc',
  ])
  expect(rows.map(({ depth, program, args }) => [depth, program, args])).toEqual([
    [0, 'bash', '--norc'],
    [0, 'fish', ''],
    [0, 'bash', '--init-file /home/a/bash.sh'],
  ])
})

test('only answers that a prompt offers get a button', () => {
  const texts = (prompt: string, above: string[] = []): string[] =>
    quickAnswers(prompt, above).map((one) => one.text)
  expect(texts('Proceed? [Y/n] ')).toEqual(['y', 'n'])
  expect(texts('Overwrite? (y/n [n]) ')).toEqual([])
  expect(texts('Proceed? [y/N] (default N): ')).toEqual(['y', 'n'])
  expect(texts('Stage this hunk [y,n,q,a,d,e,?]? ')).toEqual(['y', 'n', 'q', 'a', 'd', 'e', '?'])
  expect(texts('continue connecting (yes/no/[fingerprint])? ')).toEqual(['yes', 'no'])
  for (const text of ['Name: ', 'Hostname? ', 'Delete which file? ', 'Port [8080]: ', 'Your name, yes/no? '])
    expect(texts(text)).toEqual([])
  // What was offered before the question, and a question to which an answer is being typed.
  for (const text of ['Wrote [y/n] to answers.txt. Hostname: ', 'Proceed? [y/N] nev'])
    expect(texts(text)).toEqual([])
})

test('an answer says its word, what is sent, and that it is the default', () => {
  const said = (prompt: string): string[] =>
    quickAnswers(prompt).map(({ label, hint }) => (hint ? `${label} (${hint})` : label))
  expect(said('Proceed? [y/N] ')).toEqual(['Yes (y)', 'No (n, default)'])
  expect(said('Sure (yes/no)? ')).toEqual(['Yes', 'No'])
  expect(said('Stage [y,n,q]? ')).toEqual(['Yes (y)', 'No (n)', 'q'])
  expect(said('Axis [X/y/z]: ')).toEqual(['x (default)', 'y', 'z'])
})

test('a numbered menu over the prompt offers its entries', () => {
  const menu = ['Where to?', '1) staging', '2) production', '']
  expect(quickAnswers('#? ', menu).map((one) => one.label)).toEqual(['1 staging', '2 production'])
  expect(quickAnswers('#? ', ['2) a', '3) b'])).toEqual([]) // a list that begins elsewhere is no menu
  expect(quickAnswers('Name: ', ['1) one', 'Some text'])).toEqual([])
})

test('a list over a prompt is a menu only where the prompt asks for one of its entries', () => {
  const list = ['1) alpha', '2) beta']
  const offered = (prompt: string, command = ''): number => quickAnswers(prompt, list, command).length
  for (const prompt of [
    'Hostname: ',
    'Where to? ',
    'Phone number: ',
    'Number of workers: ',
    'Choose a name: ',
    'Select a password for alice: ',
    'Which port should it use? ',
    'Имя number: ',
    'Port [1-65535]: ',
    'Level (1-5): ',
    '> ',
    '',
  ])
    expect([prompt, offered(prompt)]).toEqual([prompt, 0])
  for (const prompt of [
    '#? ',
    'Your choice: ',
    'Enter a number: ',
    'Select an option and press Enter: ',
    'Which one? ',
    'Choice [1]: ',
    'Profile [1-2]: ',
    'Selection (default 1): ',
  ])
    expect([prompt, offered(prompt)]).toEqual([prompt, 2])
  expect(offered('Where to? ', "PS3='Where to? '; select to in alpha beta; do echo $to; done")).toBe(2)
  expect(offered('Hostname: ', 'cat list; read -p "Hostname: " x; select_host $x')).toBe(0)
  expect(quickAnswers('#? ', ['1) a  3) c', '2) b  4) d'])).toEqual([]) // in columns
  expect(quickAnswers('Where to? ', [...list, 'not the list'], 'select x in alpha beta; do :; done')).toEqual(
    [],
  )
})

/** A scrollback in which command n printed ten lines, after thirty lines of nobody. */
function lines(total: number): BlameLine[] {
  return Array.from({ length: total }, (_, index) => ({
    number: index + 1,
    text: `line ${index + 1}`,
    actor: '',
    command: index < 30 ? null : Math.floor((index - 30) / 10),
    command_text: '',
    at: null,
    trigger: '',
    originators: [],
  }))
}

test('the first line of a command is found with few questions', async () => {
  const all = lines(10_000)
  let asked = 0
  const fetch = async (first: number, last: number) => {
    asked += 1
    return { lines: all.slice(first - 1, last), total: all.length }
  }
  for (const command of [0, 1, 500, 996]) {
    asked = 0
    const found = await findCommand(fetch, command)
    expect(found?.line.number).toBe(31 + command * 10)
    expect(asked).toBeLessThan(12)
  }
  expect(await findCommand(fetch, 5000)).toBeNull()
})

test('it is found in a terminal that holds fewer lines, and one that is off by a few', () => {
  const here = Array.from({ length: 500 }, (_, index) => `line ${index + 503}`)
  const found = { line: lines(1000)[899]!, total: 1000 }
  expect(here[locate((index) => here[index]!, here.length, found)]).toBe('line 900')
})

test('a QR code has its quiet zone and nothing but dark runs', () => {
  const { size, path: drawn } = qrPath('https://relay.example/i#secret')
  expect(size).toBeGreaterThan(29)
  expect(drawn).toMatch(/^(M\d+ \d+h\d+v1h-\d+z)+$/)
  expect(drawn.startsWith('M4 4h7v1h-7z')).toBe(true)
})
