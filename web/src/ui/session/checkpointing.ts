// The checkpoints of one open session as its page knows them, and the one that is being made. No element.

import { signal } from '@preact/signals'
import type { CheckpointInfo, SessionHandle } from '../../hold/api'

type Asks = Pick<SessionHandle, 'checkpoint' | 'checkpoints'>

export class Checkpointing {
  readonly known = signal<readonly CheckpointInfo[] | null>(null) // newest first; null: not loaded
  readonly since = signal<number | null>(null) // when the one that is being made was asked for, seconds since 1970
  readonly made = signal<CheckpointInfo | null>(null) // the last one that this page made

  constructor(private readonly handle: Asks) {}

  /** What cannot be loaded stays unknown: what depends on it says less. */
  async load(): Promise<void> {
    try {
      this.known.value = await this.handle.checkpoints()
    } catch {
      this.known.value = this.known.peek() ?? []
    }
  }

  /** One at a time; rejects with the host's refusal, after which the session runs on. */
  async make(note: string, end: boolean): Promise<CheckpointInfo | null> {
    if (this.since.peek() !== null) return null
    this.made.value = null
    this.since.value = Date.now() / 1000
    try {
      const made = await this.handle.checkpoint(note.trim(), end)
      this.made.value = made
      this.known.value = [made, ...(this.known.peek() ?? []).filter(({ id }) => id !== made.id)]
      return made
    } finally {
      this.since.value = null
    }
  }
}
