// The few pictures the app uses, drawn as strokes on a 20 by 20 grid. Always beside a word or under an
// aria-label: none of them says something alone.

const PATHS = {
  anchor:
    'M10 5.5v11M10 5.5a1.75 1.75 0 1 0 0-3.5 1.75 1.75 0 0 0 0 3.5ZM6.5 8.5h7M3.5 11.5c0 3 2.6 5 6.5 5s6.5-2 6.5-5',
  ask: 'M7 7.6a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.1-1.5 2.3M10 15.6h.01',
  back: 'M12 4.5 6.5 10l5.5 5.5',
  bell: 'M5.5 13.5h9l-1.2-1.8V9a3.3 3.3 0 0 0-6.6 0v2.7ZM8.5 16h3',
  check: 'm4.5 10.5 3.5 3.5 7.5-8',
  close: 'm5.5 5.5 9 9m0-9-9 9',
  copy: 'M7.5 7.5h8v8h-8ZM12.5 7.5v-3h-8v8h3',
  latest: 'M10 4v11.5M5 10.5l5 5 5-5',
  disk: 'M4 5h12v10H4ZM7 12h.01M4 9.5h12',
  dots: 'M10 5h.01M10 10h.01M10 15h.01',
  down: 'm5 8 5 5 5-5',
  fit: 'M3 10h14M6 7l-3 3 3 3m8-6 3 3-3 3',
  halt: 'M7.5 5v10m5-10v10',
  hand: 'M6 10V5.8a1.1 1.1 0 0 1 2.2 0V9m0-.5V4.3a1.1 1.1 0 0 1 2.2 0V9m0-3.9a1.1 1.1 0 0 1 2.2 0V9.5m0-2.2a1.1 1.1 0 0 1 2.2 0v4.2c0 3-1.8 5-4.6 5-2.4 0-3.4-1.2-4.6-3.2L4 10.9c-.7-1.3 1-2.3 1.8-1.1L7 11.5',
  invite:
    'M8.5 9a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5ZM3 16c.4-3 2.5-4.5 5.5-4.5S13.6 13 14 16M15 6.5v5M12.5 9h5',
  key: 'M8 12a3.5 3.5 0 1 1 2.3-4.2L17 8v2.5h-2V13h-2.5v-2.5h-2.2A3.5 3.5 0 0 1 8 12ZM6.5 8.7h.01',
  keyboard: 'M3 6h14v8.5H3ZM5.5 8.7h.01M8 8.7h.01M10.5 8.7h.01M13 8.7h.01M7 11.8h6',
  lock: 'M5.5 9h9v7h-9ZM7.5 9V6.8a2.5 2.5 0 0 1 5 0V9',
  link: 'M7 3.5V7m6-3.5V7M5 7h10v3.5a5 5 0 0 1-10 0ZM10 15.5V18',
  minus: 'M5 10h10',
  moon: 'M15.5 12A6.5 6.5 0 0 1 8 4.5a6.5 6.5 0 1 0 7.5 7.5Z',
  move: 'M3.5 10h13M12.5 6l4 4-4 4',
  panel: 'M3.5 4.5h13v11h-13ZM12 4.5v11',
  play: 'M7 4.8 15 10l-8 5.2Z',
  plus: 'M10 5v10M5 10h10',
  qr: 'M4 4h4.5v4.5H4ZM11.5 4H16v4.5h-4.5ZM4 11.5h4.5V16H4ZM11.5 11.5h2v2h-2ZM16 14v2h-2.5M16 11.5h.01',
  search: 'M9 13.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2 4 4',
  send: 'M4 10h11M10.5 5.5 15 10l-4.5 4.5',
  shield: 'M10 2.8 16 5v4.5c0 3.6-2.4 6.3-6 7.7-3.6-1.4-6-4.1-6-7.7V5ZM10 7v3.2M10 12.8h.01',
  sun: 'M10 13.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4ZM10 2.5v1.8m0 11.4v1.8M2.5 10h1.8m11.4 0h1.8M4.7 4.7 6 6m8 8 1.3 1.3m0-10.6L14 6m-8 8-1.3 1.3',
  up: 'm5 12 5-5 5 5',
  warn: 'M10 3.5 17 16H3ZM10 8.5v3.2M10 13.8h.01',
  text: 'M4.5 6V4.5h11V6M10 4.5v11m-2 0h4',
} as const

type IconName = keyof typeof PATHS

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}
