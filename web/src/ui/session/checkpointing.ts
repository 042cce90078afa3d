// The checkpoints of one open session as its page knows them, and the one that is being made. No element.

import { signal } from '@preact/signals'
import type { CheckpointInfo, SessionHandle, Trouble } from '../../hold/api'

type Asks = Pick<SessionHandle, 'checkpoint' | 'checkpoints'>

export class Checkpointing {
  readonly known = signal<readonly CheckpointInfo[] | null>(null) // newest first; null: not loaded
  readonly since = signal<number | null>(null) // when the one that is being made was asked for, seconds since 1970
  readonly made = signal<CheckpointInfo | null>(null) // the last one that this page made
  readonly failed = signal<Trouble | null>(null) // why the last one was not made; the session runs on

  constructor(private readonly handle: Asks) {}

  /** What cannot be loaded stays unknown: what depends on it says less. */
  async load(): Promise<void> {
    try {
      this.known.value = await this.handle.checkpoints()
    } catch {
      this.known.value = this.known.peek() ?? []
    }
  }

  /** One at a time; null when none was made. */
  async make(note: string, end: boolean): Promise<CheckpointInfo | null> {
    if (this.since.peek() !== null) return null
    this.made.value = this.failed.value = null
    this.since.value = Date.now() / 1000
    try {
      const made = await this.handle.checkpoint(note.trim(), end)
      this.made.value = made
      this.known.value = [made, ...(this.known.peek() ?? []).filter(({ id }) => id !== made.id)]
      return made
    } catch (error) {
      this.failed.value = error as Trouble
      return null
    } finally {
      this.since.value = null
    }
  }
}
