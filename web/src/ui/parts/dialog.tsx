// A modal box. The browser's own dialog element does the hard parts: focus stays inside, Escape closes,
// what is behind is out of reach of keyboard and screen reader.

import { useLayoutEffect, useRef } from 'preact/hooks'
import type { ComponentChildren } from 'preact'
import { Icon } from './icon'
import { ToastPlace } from './toast'

interface Props {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly testid?: string
}

export function Dialog({ title, onClose, children, testid }: Props) {
  const box = useRef<HTMLDialogElement>(null)
  // Before the browser draws or takes a key: an Escape right after the click must close it.
  useLayoutEffect(() => {
    const shown = box.current
    shown?.showModal()
    return () => shown?.close()
  }, [])
  return (
    <dialog
      ref={box}
      class="dialog"
      data-testid={testid}
      aria-label={title}
      onClose={onClose}
      onCancel={onClose}
      onClick={(event) => event.target === box.current && onClose()}
    >
      <ToastPlace />
      <div class="dialog-body">
        <div class="dialog-head">
          <h2>{title}</h2>
          <button class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        {children}
      </div>
    </dialog>
  )
}
