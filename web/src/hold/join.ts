// Joining by an invite: a link becomes a machine that this device can reach. The code in the link is sent to nobody: the
// handshake is keyed with it, so only the host whose key is in the link can answer.

import type { JoinFailure } from './api'
import { asHoldError, HoldError } from '../wire/errors'
import { RecordKind } from '../wire/generated/constants'
import { EpochFloor } from '../wire/epoch-floor'
import { decodeChain } from '../wire/grants'
import { hex } from '../wire/bytes'
import { HOST_EPOCH, hostChannelId } from '../wire/ids'
import { type InviteLink, invitePrologue, proofOf, pskOf } from '../wire/invites'
import { decodeHostMessage, encodeRequest, type HostMessage } from '../wire/messages'
import { within } from './backoff'
import type { DeviceKeys } from './device-keys'
import { RelayLink } from './relay-link'
import { dial } from './secure-channel'

const ANSWER_S = 20
const LINGER_MS = 200

/** The host's answer to a device that joins by this link, through the relay at `url`. */
export async function joinBy(
  keys: DeviceKeys,
  link: InviteLink,
  url: string,
  name: string,
): Promise<HostMessage<'joined'>> {
  const joined = await askBy(keys, link, url, encodeRequest('join', 1, { name }), 'joined')
  checkChain(joined.chain, keys, link)
  return joined
}

/** Who invites to what by this link. Nothing is used up. */
export function seeBy(keys: DeviceKeys, link: InviteLink, url: string): Promise<HostMessage<'invite_seen'>> {
  return askBy(keys, link, url, encodeRequest('see_invite', 1, {}), 'invite_seen')
}

/** The only request on the channel of an invite. */
async function askBy<T extends 'joined' | 'invite_seen'>(
  keys: DeviceKeys,
  link: InviteLink,
  url: string,
  request: Uint8Array,
  wanted: T,
): Promise<HostMessage<T>> {
  const relay = await RelayLink.connect(keys.crypto, url)
  try {
    const stream = await relay.open(link.hostKey, null)
    const channel = await dial(keys, stream, {
      opening: { invite: link.id },
      session: hostChannelId(link.hostKey),
      floor: new EpochFloor(HOST_EPOCH),
      psk: pskOf(proofOf(link.id, link.code), link.hostKey),
      prologue: invitePrologue(link.id, link.hostKey),
    }).catch((error: unknown) => {
      if (asHoldError(error).code !== 'handshake_failed') throw error
      throw new HoldError(
        'invite_invalid',
        'the machine refuses this link: it has expired, was used or revoked, or is incomplete',
        'ask for a new one',
      )
    })
    const answered = new Promise<HostMessage<T>>((resolve, reject) => {
      channel.onEnd = reject
      channel.onSaid = ({ kind, body }) => {
        if (kind !== RecordKind.MESSAGE) return
        const answer = decodeHostMessage(body)
        if (answer === null) return
        if (answer.t === wanted) resolve(answer as unknown as HostMessage<T>)
        else if (answer.t === 'failed') reject(HoldError.reported(answer))
        else reject(new HoldError('protocol_violation', `the host answered ${answer.t} instead of ${wanted}`))
      }
    })
    channel.send(request, false)
    const answer = await within(
      ANSWER_S,
      answered,
      () => new HoldError('timed_out', 'the host did not answer in time'),
    )
    channel.close()
    return answer
  } finally {
    setTimeout(() => relay.close(), LINGER_MS)
  }
}

/** The grant must be for this device, by this host: anything else would be refused later, without a reason. */
function checkChain(chain: Uint8Array, keys: DeviceKeys, link: InviteLink): void {
  const links = decodeChain(chain)
  const first = links[0]?.grant
  const last = links.at(-1)?.grant
  if (
    hex(first?.issuer ?? chain) !== hex(link.hostKey) ||
    hex(last?.holder ?? chain) !== hex(keys.signer.public)
  ) {
    throw new HoldError('grant_invalid', 'the grant received is not for this device')
  }
}

export function outcomeOf(error: unknown): JoinFailure {
  const trouble = asHoldError(error)
  const reasons = {
    bad_link: 'bad_link',
    wrong_relay: 'wrong_relay',
    invite_expired: 'expired',
    invite_used: 'used',
    invite_invalid: 'invalid',
    relay_unreachable: 'unreachable',
    host_down: 'unreachable',
    timed_out: 'unreachable',
  } as const
  return { ok: false, reason: reasons[trouble.code as keyof typeof reasons] ?? 'other', trouble }
}
