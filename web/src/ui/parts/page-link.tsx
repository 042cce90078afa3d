// A link to another page of the app: without loading it anew, unless it is to open beside this one.

import type { ComponentChildren, JSX } from 'preact'
import { go, path, type Route } from '../route'

interface Props extends Omit<JSX.IntrinsicElements['a'], 'href' | 'onClick'> {
  readonly to: Route
  readonly children: ComponentChildren
}

export function PageLink({ to, children, ...more }: Props) {
  return (
    <a
      {...more}
      href={path(to)}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return
        event.preventDefault()
        go(to)
      }}
    >
      {children}
    </a>
  )
}
