// The live processes of the session as the kernel has them, with the ports they listen on. Asked for again
// and again while somebody looks, and only then.

import { useEffect } from 'preact/hooks'
import { useSignal } from '@preact/signals'
import type { Graph, SessionInfo } from '../../hold/api'
import { now } from '../parts/clock'
import { age } from '../text/durations'
import { sanitize } from '../text/sanitize'
import { bytesText } from '../text/sizes'
import type { SessionController } from './session-controller'
import { viewed } from './port-view'
import { doing, portNumber, processRows, type ProcessRow } from './process-tree'

const LOOK_MS = 2000

export function Processes({ controller }: { controller: SessionController }) {
  const graph = useSignal<Graph | null>(null)
  const used = useSignal<SessionInfo['residency']>(null)
  const trouble = useSignal('')
  useEffect(() => {
    let closed = false
    let timer = 0
    const look = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const seen = await controller.handle.graph()
          const { residency } = await controller.handle.refresh()
          if (!closed) [graph.value, used.value, trouble.value] = [seen, residency, '']
        } catch (error) {
          if (!closed) trouble.value = (error as Error).message
        }
      }
      // Only after the answer: on a slow way questions must not pile up.
      if (!closed) timer = window.setTimeout(() => void look(), LOOK_MS)
    }
    void look()
    return () => {
      closed = true
      clearTimeout(timer)
    }
  }, [controller])
  if (!graph.value) return <p class="no-rows">{trouble.value ? sanitize(trouble.value) : 'Loading…'}</p>
  const rows = processRows(graph.value, controller.handle.info.value?.argv)
  const ports = rows.flatMap((row) => row.ports.map((port) => ({ port, row })))
  return (
    <div class={trouble.value ? 'is-stale' : ''}>
      {ports.length > 0 && (
        <ul class="ports" aria-label="Ports">
          {ports.map(({ port, row }) => (
            <li key={`${row.process.pid}${port}`}>
              <strong class="mono">{port}</strong> <span class="faint">used by</span>{' '}
              {sanitize(row.process.name, 40)} <span class="faint mono">{row.process.pid}</span>{' '}
              {controller.handle.rights.value?.includes('input') && (
                <button
                  class="button small"
                  data-testid={`open-port-${portNumber(port)}`}
                  onClick={() => (viewed.value = { controller, port: portNumber(port) })}
                >
                  Open
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      <ul class="processes" aria-label="Processes">
        {rows.map((row) => (
          <Row key={row.process.pid} row={row} />
        ))}
      </ul>
      {used.value && (
        <p class="faint" data-testid="residency">
          Uses {bytesText(used.value.memory_bytes)} memory, {used.value.processes} processes,{' '}
          {used.value.descriptors} descriptors, {bytesText(used.value.disk_bytes)} disk
        </p>
      )}
      {graph.value.truncated && <p class="faint">{sanitize(graph.value.truncated)}</p>}
      {trouble.value && <p class="faint">Out of date: {sanitize(trouble.value)}</p>}
    </div>
  )
}

function Row({ row }: { row: ProcessRow }) {
  const { process } = row
  return (
    <li
      class={`process ${process.foreground ? 'is-front' : ''}`}
      data-testid="process-row"
      data-pid={process.pid}
      style={{ '--depth': String(Math.min(row.depth, 12)) }}
      title={`${row.text}\nin ${process.cwd}`}
    >
      <span class="process-text mono cut">
        <strong>{sanitize(row.program, 80)}</strong> {sanitize(row.args, 200)}
      </span>
      <span class="process-about faint">
        <span class="mono">{process.pid}</span>
        <span>{doing(process)}</span>
        <span>{bytesText(process.rss_bytes)}</span>
        <span>{age(now.value - process.started)}</span>
        {process.foreground && <span class="front-mark">foreground</span>}
      </span>
    </li>
  )
}
