// What one conversation with a host makes of messages; the channel below it is a stand-in.

import { expect, test } from 'vitest'
import { HostConnection } from '../src/hold/host-connection'
import type { SecureChannel } from '../src/hold/secure-channel'
import { RecordKind } from '../src/wire/generated/constants'
import { pack } from '../src/wire/msgpack'

function connected() {
  const channel = {
    over: false,
    send: () => undefined,
    close: () => (channel.over = true),
    onSaid: (_: unknown): unknown => undefined,
    onEnd: () => undefined,
  }
  const connection = new HostConnection(channel as unknown as SecureChannel, 'op')
  const heard: string[] = []
  connection.onMessage = (message) => void heard.push(message.t)
  const say = (message: object) => channel.onSaid({ kind: RecordKind.MESSAGE, body: pack(message) })
  return { channel, connection, heard, say }
}

test('what a newer host says is passed over, and what is asked is answered all the same', async () => {
  const { channel, connection, heard, say } = connected()
  const done = connection.ask('detach', { channel: 1 })
  await say({ t: 'later_event', session: 'x' })
  await say({ t: 'answering', channel: 1, answers: true })
  await say({ t: 'done', id: 1 })
  await expect(done).resolves.toMatchObject({ t: 'done' })
  expect([heard, channel.over]).toEqual([['answering'], false])
})
