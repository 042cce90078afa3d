// A channel of its own to the host of one session, for whatever is asked there.

import type { EpochStore } from './epoch-store'
import { HostConnection } from './host-connection'
import type { MachineLink } from './machine-link'
import type { RelayLink } from './relay-link'
import { dial } from './secure-channel'

/** `session`: its whole id. `operator`: the name under which its inputs are numbered. */
export async function sessionChannel(
  machine: MachineLink,
  relay: RelayLink,
  epochs: EpochStore,
  session: string,
  operator: string,
): Promise<HostConnection> {
  const floor = epochs.floor(session)
  const stream = await relay.open(machine.key, session)
  const channel = await dial(machine.keys, stream, {
    opening: { session },
    session,
    floor,
    grant: machine.stored.peek().grant,
  })
  epochs.saw(session, floor.highest)
  return new HostConnection(channel, operator)
}
