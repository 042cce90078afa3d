// Durations and moments in words, the same words the command uses. No clock in here: the moment
// comes in as an argument, so that a page draws one moment everywhere.

const MINUTE = 60
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A duration in its two largest units: `3s`, `5m`, `2h10m`, `4d3h`. */
export function age(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < MINUTE) return `${whole}s`
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)}m`
  if (whole < DAY) return `${Math.floor(whole / HOUR)}h${Math.floor((whole % HOUR) / MINUTE)}m`
  return `${Math.floor(whole / DAY)}d${Math.floor((whole % DAY) / HOUR)}h`
}

/** How long ago, for a line that people read: `just now`, `5m ago`. */
export function ago(at: number, now: number): string {
  const seconds = now - at
  return seconds < 5 ? 'just now' : `${age(seconds)} ago`
}

/** How long a command took: finer than `age`, because most take less than a minute. */
export function took(seconds: number): string {
  if (seconds < 0.0995) return `${Math.max(1, Math.round(seconds * 1000))} ms`
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  if (seconds < MINUTE) return `${Math.round(seconds)} s`
  const whole = Math.round(seconds)
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${whole % MINUTE} s`
  return age(whole)
}

/** The time of day, and the date when it was another day. */
export function clock(at: number, now: number): string {
  const moment = new Date(at * 1000)
  const today = new Date(now * 1000)
  const two = (n: number): string => String(n).padStart(2, '0')
  const time = `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}`
  if (moment.toDateString() === today.toDateString()) return time
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ${time}`
}

/** A length of time somebody chose: `1 hour`, `30 days`. */
export function span(seconds: number): string {
  const units: [number, string][] = [
    [DAY, 'day'],
    [HOUR, 'hour'],
    [MINUTE, 'minute'],
    [1, 'second'],
  ]
  const [unit, word] = units.find(([unit]) => seconds >= unit && seconds % unit === 0) ?? [1, 'second']
  const count = Math.round(seconds / unit)
  return `${count} ${word}${count === 1 ? '' : 's'}`
}
