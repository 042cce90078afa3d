// Whether anything stands in the way of a checkpoint, before one is asked for: as the host finds it in each process now.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { CapturePlan, Movability, MoveFinding } from '../../hold/api'
import { sanitize } from '../text/sanitize'
import { bytesText } from '../text/sizes'
import type { SessionController } from './session-controller'

const SHOWN = 12 // findings; the rest is a number

export function CanMove({ controller: { handle } }: { controller: SessionController }) {
  const found = useSignal<Movability | null>(null)
  const failed = useSignal('')
  useEffect(() => {
    handle.canMove().then(
      (movability) => (found.value = movability),
      (error: Error) => (failed.value = error.message),
    )
  }, [handle])
  if (failed.value)
    return <p class="faint">Whether anything is in the way is not known: {sanitize(failed.value, 200)}.</p>
  if (!found.value) return <p class="faint">Looking at what would be in the way…</p>
  const { movable, estimate, capture } = found.value
  const all = findingsOf(found.value)
  const blocks = all.filter(({ finding }) => finding.verdict === 'blocks')
  const resets = all.filter(({ finding }) => finding.verdict === 'resets')
  const files =
    capture && capture.files > 0 ? `, and ${counted(capture.files)}, ${bytesText(capture.bytes)}` : ''
  const cost = `about ${Math.max(1, Math.round(estimate.frozen_ms))} ms, ${bytesText(estimate.bytes)} of memory${files}`
  return (
    <section class="can-move" data-testid="can-move" data-movable={movable}>
      <p class={movable ? '' : 'tone-attention'}>
        <strong>
          {!movable
            ? 'Its processes cannot be saved now'
            : resets.length > 0
              ? 'It can be saved, but for what is listed here'
              : 'Nothing is in the way'}
        </strong>
        {movable && <span class="faint">: it stands still for {cost}.</span>}
      </p>
      <Findings title="In the way" of={blocks} />
      <Findings title="Not part of it" of={resets} />
      {capture && <LeftOut of={capture} />}
      {!movable && <p class="faint">A program that offers its own state is asked for that instead.</p>}
    </section>
  )
}

function counted(files: number): string {
  return files === 1 ? '1 file' : `${files} files`
}

/** Files that stay as they are on the disk, whatever it comes back from. */
function LeftOut({ of }: { of: CapturePlan }) {
  if (of.left_out.length === 0) return null
  const more = of.left_out_count - Math.min(SHOWN, of.left_out.length)
  return (
    <ul class="findings" aria-label="Files that are not part of it">
      {of.left_out.slice(0, SHOWN).map(({ path, why }) => (
        <li key={path} class="wrap">
          Not part of it: <code>{sanitize(path, 160)}</code> <span class="faint">{sanitize(why, 200)}</span>
        </li>
      ))}
      {more > 0 && <li class="faint">and {more} more: hold can-move</li>}
    </ul>
  )
}

interface Found {
  readonly whose: string // the process; '' of the session as a whole
  readonly finding: MoveFinding
}

function findingsOf({ findings, processes }: Movability): Found[] {
  return [
    ...findings.map((finding) => ({ whose: '', finding })),
    ...processes.flatMap(({ pid, command, findings: own }) =>
      own.map((finding) => ({ whose: `${command} (${pid})`, finding })),
    ),
  ]
}

function Findings({ title, of }: { title: string; of: readonly Found[] }) {
  if (of.length === 0) return null
  return (
    <ul class="findings" aria-label={title}>
      {of.slice(0, SHOWN).map(({ whose, finding }, index) => (
        <li key={`${whose}${finding.what}${index}`} data-testid="can-move-finding">
          <span class="wrap">
            {whose && <code>{sanitize(whose, 80)}</code>} {sanitize(finding.what, 160)}:{' '}
            {sanitize(finding.why, 300)}.
          </span>{' '}
          {finding.remedy && <span class="faint wrap">To do: {sanitize(finding.remedy, 300)}.</span>}
        </li>
      ))}
      {of.length > SHOWN && <li class="faint">and {of.length - SHOWN} more: hold can-move</li>}
    </ul>
  )
}
