// The actors of each machine, loaded once per machine while it is online: for names in their colours.

import { signal } from '@preact/signals'
import type { Actor, Hold } from '../../hold/api'
import { learnHues } from '../text/actor-colour'

const known = signal<ReadonlyMap<string, readonly Actor[]>>(new Map())
const asked = new Set<string>()

export function actorNamed(machine: string, name: string): Actor | undefined {
  return known.value.get(machine)?.find((actor) => actor.name === name)
}

export function learnActors(hold: Hold): () => void {
  return hold.machines.subscribe((machines) => {
    for (const machine of machines) {
      if (machine.link !== 'online' || asked.has(machine.key)) continue
      asked.add(machine.key)
      hold.actors(machine.key).then(
        (actors) => {
          learnHues(actors)
          known.value = new Map(known.value).set(machine.key, actors)
        },
        () => asked.delete(machine.key), // offline again; asked when it is back
      )
    }
  })
}
