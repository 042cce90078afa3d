// Which page is shown. The address decides, so that a link, a reload and the back button work.

import { signal } from '@preact/signals'

export type Route =
  | { readonly page: 'overview' }
  | { readonly page: 'session'; readonly machine: string; readonly session: string }
  | { readonly page: 'approval'; readonly machine: string; readonly approval: string }
  | { readonly page: 'score'; readonly machine: string; readonly actor: string }
  | { readonly page: 'join' }
  | { readonly page: 'lost'; readonly path: string }

export function parse(path: string): Route {
  const steps = path.split('/').filter((step) => step !== '')
  if (steps.length === 0) return { page: 'overview' }
  if (steps.length === 1 && steps[0] === 'i') return { page: 'join' }
  if (steps.length === 4 && steps[0] === 'm' && steps[2] === 's') {
    const machine = decoded(steps[1]!)
    const session = decoded(steps[3]!)
    if (machine && session) return { page: 'session', machine, session }
  }
  if (steps.length === 4 && steps[0] === 'm' && steps[2] === 'a') {
    const machine = decoded(steps[1]!)
    const approval = decoded(steps[3]!)
    if (machine && approval) return { page: 'approval', machine, approval }
  }
  if (steps.length === 4 && steps[0] === 'm' && steps[2] === 'score') {
    const machine = decoded(steps[1]!)
    const actor = decoded(steps[3]!)
    if (machine && actor) return { page: 'score', machine, actor }
  }
  return { page: 'lost', path }
}

function decoded(step: string): string | null {
  try {
    return decodeURIComponent(step)
  } catch {
    return null
  }
}

export function path(route: Route): string {
  if (route.page === 'session') {
    return `/m/${encodeURIComponent(route.machine)}/s/${encodeURIComponent(route.session)}`
  }
  if (route.page === 'approval') {
    return `/m/${encodeURIComponent(route.machine)}/a/${encodeURIComponent(route.approval)}`
  }
  if (route.page === 'score') {
    return `/m/${encodeURIComponent(route.machine)}/score/${encodeURIComponent(route.actor)}`
  }
  if (route.page === 'join') return '/i'
  return route.page === 'lost' ? route.path : '/'
}

export const route = signal<Route>({ page: 'overview' })

/** Follows the address from now on. The fragment of an invite link is left where it is: it is a secret
    that only the join page reads, and that page takes it out of the address. */
export function follow(): void {
  const read = (): void => {
    route.value = parse(location.pathname)
  }
  addEventListener('popstate', read)
  read()
}

export function go(to: Route, replace = false): void {
  const address = path(to)
  if (replace) history.replaceState(null, '', address)
  else history.pushState(null, '', address)
  route.value = to
  scrollTo(0, 0)
}
