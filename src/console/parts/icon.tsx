/** Drawings on a grid of 16 by 16, as path data: strokes of 1.4 in the colour of the text. */
const DRAWINGS = {
  overview: 'M2.5 3.5h11v3.5h-11zM2.5 9.5h11V13h-11zM5 5.25h.01M5 11.25h.01M7.5 5.25h3.5M7.5 11.25h3.5',
  explore: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM10.4 5.6 9 9l-3.4 1.4L7 7z',
  recorder: 'M2.5 4h4.5M2.5 8h4.5M2.5 12h4.5M9 4h4.5M9 8h4.5M9 12h4.5M7.6 2.5v11',
  memory:
    'M4.5 6a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM12 8.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM5.5 14a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM6.4 4.6l3.7 1.3M4.7 6l.6 4M10.5 7.8 7 10.7',
  connect: 'M6 2v3.5M10 2v3.5M4 5.5h8V8a4 4 0 0 1-8 0zM8 12v2.5',
  configuration:
    'M2.5 4.5h6M12 4.5h1.5M2.5 11.5H4M7.5 11.5h6M10.25 6.25a1.75 1.75 0 1 0 0-3.5 1.75 1.75 0 0 0 0 3.5zM5.75 13.25a1.75 1.75 0 1 0 0-3.5 1.75 1.75 0 0 0 0 3.5z',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14',
  close: 'm4 4 8 8M12 4l-8 8',
  copy: 'M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3',
  check: 'm3 8.5 3.5 3.5L13 4.5',
  'chevron-right': 'm6 3.5 4.5 4.5L6 12.5',
  'chevron-left': 'M10 3.5 5.5 8l4.5 4.5',
  'chevron-down': 'M3.5 6 8 10.5 12.5 6',
  'chevron-up': 'M3.5 10 8 5.5 12.5 10',
  'arrow-right': 'M3 8h10M9 4l4 4-4 4',
  'arrow-up': 'M8 13V3M4 7l4-4 4 4',
  'arrow-down': 'M8 3v10M4 9l4 4 4-4',
  more: 'M3.5 8.3a.3.3 0 1 0 0-.6.3.3 0 0 0 0 .6zM8 8.3a.3.3 0 1 0 0-.6.3.3 0 0 0 0 .6zM12.5 8.3a.3.3 0 1 0 0-.6.3.3 0 0 0 0 .6z',
  sun: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9',
  moon: 'M13.5 9.6A5.8 5.8 0 0 1 6.4 2.5a5.8 5.8 0 1 0 7.1 7.1z',
  system: 'M2 3h12v8H2zM6 14h4M8 11v3',
  keyboard: 'M1.5 4h13v8h-13zM4 6.7h.01M6.7 6.7h.01M9.3 6.7h.01M12 6.7h.01M5 9.4h6',
  'sign-out': 'M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6',
  'sign-in': 'M9.5 2.5h4v11h-4M7 5l3 3-3 3M10 8H2.5',
  play: 'M4.5 3v10l8-5z',
  stop: 'M4 4h8v8H4z',
  pause: 'M5.5 3.5v9M10.5 3.5v9',
  restart: 'M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3',
  download: 'M8 2.5V10M4.8 7 8 10.2 11.2 7M2.5 13.5h11',
  upload: 'M8 10V2.5M4.8 5.7 8 2.5l3.2 3.2M2.5 13.5h11',
  external: 'M9.5 2.5h4v4M13.5 2.5 7.5 8.5M11 9.5v4H2.5V5h4',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  trash: 'M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9M6.8 7v4M9.2 7v4',
  edit: 'm10.5 3 2.5 2.5L5.5 13H3v-2.5z',
  filter: 'M2.5 3.5h11L9.3 8.6v4.2l-2.6-1.2v-3z',
  warning: 'M8 2.2 14.5 13.5h-13zM8 6.5v3M8 11.6h.01',
  info: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.3v3.5M8 5.1h.01',
  clock: 'M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.8V8l2.2 1.5',
  swap: 'M3 5.5h9.5M10 3l2.5 2.5L10 8M13 10.5H3.5M6 8l-2.5 2.5L6 13',
  link: 'M6.8 9.2a2.6 2.6 0 0 0 3.7 0l2.2-2.2A2.6 2.6 0 0 0 9 3.3l-.7.7M9.2 6.8a2.6 2.6 0 0 0-3.7 0L3.3 9A2.6 2.6 0 0 0 7 12.7l.7-.7',
  fit: 'M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10',
  eye: 'M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8zM8 9.8a1.8 1.8 0 1 0 0-3.6 1.8 1.8 0 0 0 0 3.6z',
  wrap: 'M2.5 4h11M2.5 8h8.7a2 2 0 0 1 0 4H8M9.8 10.2 8 12l1.8 1.8M2.5 12h2.7',
} as const

export type IconName = keyof typeof DRAWINGS

/** A drawing without a meaning of its own: the control around it has the name. */
export const Icon = ({ name }: { readonly name: IconName }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d={DRAWINGS[name]} />
  </svg>
)
