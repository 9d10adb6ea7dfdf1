import { useMemo } from 'preact/hooks'
import { Button } from '../../../parts/button.tsx'
import { formatBytes } from '../../../parts/format.ts'
import { downloadText } from '../../../parts/json-text.tsx'

export interface MediaProps {
  readonly data: unknown // base64
  readonly mimeType: string
  readonly name: string // for the download
}

const IMAGES: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'image/bmp',
  'image/svg+xml', // as an image it runs no script and loads nothing
])
const SOUNDS: ReadonlySet<string> = new Set([
  'audio/wav',
  'audio/x-wav',
  'audio/mpeg',
  'audio/mp3',
  'audio/mp4',
  'audio/aac',
  'audio/ogg',
  'audio/flac',
  'audio/webm',
])
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
const MOST_SHOWN = 12 * 2 ** 20 // characters of base64

export const mediaKind = (mimeType: string): 'image' | 'audio' | undefined => {
  const [type = ''] = mimeType.toLowerCase().split(';')
  return IMAGES.has(type.trim()) ? 'image' : SOUNDS.has(type.trim()) ? 'audio' : undefined
}

/** An image or a sound of a known type; anything else can be saved. */
export const Media = ({ data, mimeType, name }: MediaProps) => {
  const text = useMemo(() => (typeof data === 'string' ? data.replaceAll(/\s/g, '') : undefined), [data])
  if (text === undefined || !BASE64.test(text)) return <p class="explore-note">The data is not base64.</p>
  const [type = ''] = mimeType.toLowerCase().split(';')
  const kind = mediaKind(mimeType)
  const url = `data:${type.trim()};base64,${text}`
  const isShown = text.length <= MOST_SHOWN
  return (
    <div class="media">
      {kind === 'image' && isShown && <img src={url} alt={`${name} (${type})`} />}
      {kind === 'audio' && isShown && (
        // biome-ignore lint/a11y/useMediaCaption: the protocol has no captions
        <audio controls src={url} aria-label={`${name} (${type})`} />
      )}
      <p class="explore-note">
        <span class="mono">{mimeType || 'unknown type'}</span> · {formatBytes(Math.floor((text.length * 3) / 4))}
        {kind === undefined && ' · not shown: the type is not known to be safe'}
        <Button kind="quiet" icon="download" onClick={() => downloadText(bytesOf(text, type), fileName(name, type))}>
          Download
        </Button>
      </p>
    </div>
  )
}

const bytesOf = (base64: string, type: string): Blob => {
  const binary = atob(base64)
  return new Blob([Uint8Array.from(binary, character => character.charCodeAt(0))], { type })
}

const ENDINGS: Readonly<Record<string, string>> = { 'image/svg+xml': 'svg', 'audio/mpeg': 'mp3', 'image/jpeg': 'jpg' }

const fileName = (name: string, type: string): string => {
  const base = name.replaceAll(/[^\w.-]+/g, '_').slice(-60) || 'data'
  return /\.\w{1,5}$/.test(base)
    ? base
    : `${base}.${ENDINGS[type] ?? type.split('/')[1]?.replaceAll(/\W/g, '') ?? 'bin'}`
}
