// Why a machine is not reached, in words: what is known, what it means for its sessions, what to do. Pure.

import type { Unreached } from '../../hold/api'

interface UnreachedText {
  readonly title: string
  readonly means: string
  readonly todo: string
}

/** A lost connection ends no session; a machine that was switched off does: neither is claimed where it is not known. */
export function unreachedText(why: Unreached, machine: string): UnreachedText {
  switch (why) {
    case 'relay':
      return {
        title: 'This device is not connected',
        means: 'No relay can be reached from here. That stops nothing: sessions go on without this page.',
        todo: 'Check the network of this device.',
      }
    case 'down':
      return {
        title: `${machine} is not connected`,
        means:
          'It is off, has no network, or holdfast is not running there. Only switching it off ends sessions.',
        todo: 'On the machine, `hold up` starts holdfast again.',
      }
    case 'silent':
      return {
        title: `${machine} does not answer`,
        means:
          'It is connected to its relay, but holdfast on it does not answer. Its sessions do not need it to go on.',
        todo: 'On the machine, `hold daemon restart` replaces a hung daemon.',
      }
  }
}
