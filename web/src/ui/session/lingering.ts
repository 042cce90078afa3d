// A number that is told only when it did not go down for a while, and at once when it is zero: what comes and goes
// with each key is not worth a look, and what is shown costs a frame.

export const LINGER_MS = 150

export class Lingering {
  private timer: ReturnType<typeof setTimeout> | undefined
  private latest = 0
  private told = 0

  constructor(private readonly tell: (value: number) => void) {}

  now(value: number): void {
    if (value < this.latest) this.close() // some of it is through: what is left is younger
    this.latest = value
    if (value === 0) this.say(0)
    else if (this.told > 0) this.say(value)
    else
      this.timer ??= setTimeout(() => {
        this.timer = undefined
        this.say(this.latest)
      }, LINGER_MS)
  }

  close(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  private say(value: number): void {
    if (value === this.told) return
    this.told = value
    this.tell(value)
  }
}
