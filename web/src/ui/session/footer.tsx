// The line under the terminal: its size, the operators, the round-trip time, and the zoom.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import { Icon } from '../parts/icon'
import { touch } from '../parts/viewport'
import type { SessionController } from './session-controller'
import { DelayedCount } from './delayed-count'

export function Footer({ controller }: { controller: SessionController }) {
  const { handle } = controller
  const size = handle.operators.value?.size ?? handle.info.value?.size
  const rtt = handle.rtt.value
  const presence = handle.operators.value
  const epoch = handle.info.value?.epoch ?? 1
  return (
    <footer class="foot row">
      {size && (
        <span title="The size of the session; this page never changes it on its own">
          {size.cols}×{size.rows}
        </span>
      )}
      {epoch > 1 && (
        <span title="Which of its lives this is: it was restored since it began">epoch {epoch}</span>
      )}
      {presence && (
        <span class="foot-who">
          {presence.operators} attached{presence.observers > 0 && `, ${presence.observers} watching`}
        </span>
      )}
      {rtt !== null && <span title="Round-trip time to the host">{Math.round(rtt)} ms</span>}
      <OnTheWay controller={controller} />
      <span class="grow" />
      {!touch.value && <span class="wide-only">Ctrl+Shift+↓ leaves the terminal</span>}
      <LensButtons controller={controller} />
    </footer>
  )
}

/** Only what takes long: a word that came and went with each key would cost a frame before each echo. */
function OnTheWay({ controller }: { controller: SessionController }) {
  const late = useSignal(0)
  useEffect(() => {
    const delayed = new DelayedCount((bytes) => (late.value = bytes))
    const undo = controller.handle.inputPending.subscribe((bytes) => delayed.now(bytes))
    return () => {
      undo()
      delayed.close()
    }
  }, [controller])
  if (late.value === 0) return null
  return <span title="Typed but not yet accepted by the host">{late.value} B pending</span>
}

function LensButtons({ controller }: { controller: SessionController }) {
  const lens = controller.lens
  // The terminal hands its lens in when it is mounted; `ready` comes after that.
  if (!controller.ready.value || !lens) return null
  const stay = (event: Event): void => event.preventDefault()
  return (
    <span class="lens" role="group" aria-label="Lens" onPointerDown={stay} onMouseDown={stay}>
      <button
        data-testid="lens-fit"
        aria-pressed={lens.mode.value === 'fit'}
        aria-label="Fit the width"
        title="Fit the whole width"
        onClick={() => lens.use('fit')}
      >
        <Icon name="fit" />
      </button>
      <button
        data-testid="lens-readable"
        aria-pressed={lens.mode.value === 'readable'}
        aria-label="Readable size"
        title="Readable font size; the view follows the cursor"
        onClick={() => lens.use('readable')}
      >
        <Icon name="text" />
      </button>
      <button
        data-testid="lens-zoom-out"
        aria-label="Smaller"
        title="Smaller"
        onClick={() => lens.step(1 / 1.12)}
      >
        <Icon name="minus" />
      </button>
      <button data-testid="lens-zoom-in" aria-label="Larger" title="Larger" onClick={() => lens.step(1.12)}>
        <Icon name="plus" />
      </button>
    </span>
  )
}
