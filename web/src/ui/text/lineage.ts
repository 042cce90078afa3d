// Which life of a session this is, in words. Pure.

interface Back {
  readonly when: string
  readonly actor: string
  readonly kind: string
}

const KINDS: Readonly<Record<string, string>> = {
  application: ', with the state its program had saved',
  cold: ', its command was started again',
}

/** `Epoch 2 · restored 5m ago by maria`; empty in its first life. */
export function lineageText(epoch: number, back: Back | null): string {
  if (epoch <= 1 && !back) return ''
  const came = back ? ` · restored ${back.when} by ${back.actor}${KINDS[back.kind] ?? ''}` : ''
  return `Epoch ${epoch}${came}`
}
