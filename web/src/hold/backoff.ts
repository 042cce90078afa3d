// How long to wait before trying again: longer each time, never the same for all pages that lost one relay together.

const FIRST_S = 0.25
const MOST_S = 8 // so long after the network is back a page may still say that it is not
const FACTOR = 1.8
const LEAVE_SHARE = 0.05 // of the time a relay gives that ends: all pages together go within this
const GIVEN_MOST_S = 60

export class Backoff {
  private nextS = FIRST_S

  constructor(private readonly chance: () => number = Math.random) {}

  /** Seconds to wait now. */
  next(): number {
    const wait = this.nextS * (0.7 + 0.6 * this.chance())
    this.nextS = Math.min(MOST_S, this.nextS * FACTOR)
    return wait
  }

  reset(): void {
    this.nextS = FIRST_S
  }
}

/** When to leave a relay that ends within so many seconds, and how long at the most to wait for answers first. */
export function leaveAfter(
  withinS: number,
  chance: () => number = Math.random,
): { first: number; latest: number } {
  const given = Math.min(GIVEN_MOST_S, withinS)
  return { first: given * LEAVE_SHARE * chance(), latest: given / 4 }
}

/** A pause that can be cut short. */
export class Pause {
  private wake: (() => void) | null = null

  wait(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000)
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  end(): void {
    this.wake?.()
  }
}

export async function within<T>(seconds: number, doing: Promise<T>, late: () => Error): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), seconds * 1000)
  })
  try {
    return await Promise.race([doing, limit])
  } finally {
    clearTimeout(timer)
  }
}
