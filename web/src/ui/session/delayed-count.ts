// A number that is shown only after it has not decreased for a while, and hidden at once when it is zero: what changes
// with each key is not worth showing, and each change costs a frame.

export const LINGER_MS = 150

export class DelayedCount {
  private timer: ReturnType<typeof setTimeout> | undefined
  private latest = 0
  private shown = 0

  constructor(private readonly show: (value: number) => void) {}

  now(value: number): void {
    if (value < this.latest) this.close() // some of it is through: what is left is younger
    this.latest = value
    if (value === 0) this.setShown(0)
    else if (this.shown > 0) this.setShown(value)
    else
      this.timer ??= setTimeout(() => {
        this.timer = undefined
        this.setShown(this.latest)
      }, LINGER_MS)
  }

  close(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  private setShown(value: number): void {
    if (value === this.shown) return
    this.shown = value
    this.show(value)
  }
}
