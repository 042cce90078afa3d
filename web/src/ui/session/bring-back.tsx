// What can be done about a session of which nothing runs: wake it, bring it back, or start one that follows it. The page follows
// what was brought back by itself (session-page.tsx).

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { useHold } from '../context'
import { now } from '../parts/clock'
import { toast, toastError } from '../parts/toast'
import { go } from '../route'
import { notBack } from '../text/checkpoints'
import { may } from '../text/rights'
import { sanitize } from '../text/sanitize'
import { isAsleep, restsOrOver } from '../text/session-state'
import type { WayBack } from '../text/standstill'
import { ProgressBar, useHowFar } from './progress-bar'
import type { SessionController } from './session-controller'

/** What this device may do about it, and the checkpoint it would come back from. */
export function useWayBack({ handle, checkpointing }: SessionController): WayBack {
  const link = handle.link.value
  const ending = link.at === 'ended' ? link.ending : null
  const asleep = isAsleep(ending)
  const wanted = asleep ? ending?.checkpoint : ending?.cause?.checkpoint
  useEffect(() => {
    if (wanted) void checkpointing.load()
  }, [wanted])
  const rights = handle.rights.value
  const lost = typeof ending?.lost === 'string' && !ending.successor
  return {
    restores: !!wanted && (asleep || lost) && may(rights, 'checkpoint'),
    revives: lost && may(rights, 'input') && may(rights, 'end'),
    checkpoint: checkpointing.known.value?.find(({ id }) => id === wanted) ?? null,
    now: now.value,
  }
}

/** To where it moved, if this device has joined that machine. */
function GoAlong({ controller: { handle } }: { controller: SessionController }) {
  const link = handle.link.value
  const id = handle.info.value?.id
  const there = useHold().sessions.value.find(
    ({ machine, info }) => machine !== handle.machine && info.id === id && !restsOrOver(info.state),
  )
  if (link.at !== 'ended' || !link.ending?.moved_to || !there || !id) return null
  return (
    <button
      class="button primary"
      data-testid="go-along"
      onClick={() => go({ page: 'session', machine: there.machineName, session: id })}
    >
      Go to {sanitize(there.machineName, 64)}
    </button>
  )
}

interface Props {
  readonly controller: SessionController
  readonly machine: string
  readonly way: WayBack
}

export function BringBack({ controller, machine, way }: Props) {
  const { handle } = controller
  const far = useHowFar(controller)
  const since = useSignal<number | null>(null)
  const link = handle.link.value
  const asleep = link.at === 'ended' && isAsleep(link.ending)
  const doing = async (what: () => Promise<void>): Promise<void> => {
    since.value = now.value
    try {
      await what()
    } catch (error) {
      toastError(error)
    } finally {
      since.value = null
    }
  }
  const restore = async (): Promise<void> => {
    const { info, report } = await handle.restore()
    const not = notBack(report)
    const back = `${sanitize(info.name, 64)} ${asleep ? 'is awake' : 'is back'}`
    toast(not ? `${back}; ${sanitize(not, 300)}` : back, not ? 'attention' : 'good')
  }
  const revive = async (): Promise<void> => {
    const { info } = await handle.revive()
    go({ page: 'session', machine, session: info.id })
  }
  // Somebody else, or the host by itself, may have asked for it.
  if (since.value === null && far)
    return (
      <p class="row" role="status" data-testid="bringing-back">
        <ProgressBar label={far.work} far={far} since={now.value} />
      </p>
    )
  if (since.value !== null)
    return (
      <p class="row" role="status" data-testid="bringing-back">
        <ProgressBar label={asleep ? 'Waking it' : 'Bringing it back'} far={far} since={since.value} />
      </p>
    )
  return (
    <>
      <GoAlong controller={controller} />
      {way.restores && (
        <button class="button primary" data-testid="session-restore" onClick={() => void doing(restore)}>
          {asleep ? 'Wake' : 'Restore'}
        </button>
      )}
      {way.revives && (
        <button
          class={`button ${way.restores ? '' : 'primary'}`}
          data-testid="session-revive"
          onClick={() => void doing(revive)}
        >
          Start a successor
        </button>
      )}
    </>
  )
}
