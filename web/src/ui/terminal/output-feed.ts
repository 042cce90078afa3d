// Output on its way into the terminal, with limits. A terminal draws slower than a program can print;
// what it has not drawn yet must not grow without end, or the page stalls and then dies. So the sender is
// held back, and past a limit the rest is dropped and the session is asked for its screen: the reader
// sees the present, not a film of the past.

interface Sink {
  write(data: Uint8Array, done: () => void): void
}

export const BACKLOG_MAX_BYTES = 4 * 1024 * 1024 // about half a second of drawing on a slow phone
export const CALM_BYTES = 256 * 1024 // above that the sender is asked to wait
export const DRAWING_BYTES = 128 * 1024 // given to the terminal at once; what waits here can still be dropped
export const PIECE_BYTES = 32 * 1024 // drawn in one go, a few milliseconds: keys get in between

type Step = Uint8Array | (() => void)

export class OutputFeed {
  private queue: Step[] = []
  private queued = 0
  private drawing = 0
  private dropping = false
  private closed = false
  private waiters: (() => void)[] = []

  constructor(
    private readonly sink: Sink,
    private readonly askResync: () => void,
    private readonly onDrawn: () => void = () => undefined,
  ) {}

  /** Bytes that came and are not drawn yet. */
  get backlog(): number {
    return this.queued + this.drawing
  }

  /** Bytes that follow what is shown. What it returns is done when more is welcome. */
  live(data: Uint8Array): Promise<void> | void {
    if (this.dropping || this.closed) return
    if (this.backlog + data.length > BACKLOG_MAX_BYTES) {
      this.dropping = true
      return
    }
    this.put(data)
    this.pump()
    return this.calm()
  }

  /** The whole view, after `prepare` made room for it. Takes the place of all that is not drawn yet. */
  resync(data: Uint8Array, prepare: () => void): Promise<void> | void {
    if (this.closed) return
    this.dropping = false
    this.queue = [prepare]
    this.queued = 0
    this.put(data)
    this.pump()
    return this.calm()
  }

  close(): void {
    this.closed = true
    this.queue = []
    this.queued = 0
    this.wake()
  }

  private put(data: Uint8Array): void {
    for (let at = 0; at < data.length; at += PIECE_BYTES) this.queue.push(data.subarray(at, at + PIECE_BYTES))
    this.queued += data.length
  }

  private pump(): void {
    while (this.queue.length > 0 && !this.closed) {
      const step = this.queue[0]!
      if (typeof step === 'function') {
        // Between two views the terminal must have drawn all of the old one.
        if (this.drawing > 0) return
        this.queue.shift()
        step()
        continue
      }
      if (this.drawing > 0 && this.drawing + step.length > DRAWING_BYTES) return
      this.queue.shift()
      this.queued -= step.length
      this.drawing += step.length
      this.sink.write(step, () => this.drawn(step.length))
    }
  }

  private drawn(bytes: number): void {
    this.drawing -= bytes
    if (this.closed) return
    this.onDrawn()
    this.pump()
    if (this.backlog < CALM_BYTES) this.wake()
    // Asked once it has caught up, and only once: `dropping` stays until the view is here.
    if (this.dropping && this.backlog === 0) this.askResync()
  }

  private calm(): Promise<void> | void {
    if (this.backlog < CALM_BYTES) return
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  private wake(): void {
    const waiters = this.waiters
    this.waiters = []
    for (const resolve of waiters) resolve()
  }
}
