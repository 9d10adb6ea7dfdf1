import { readFile } from 'node:fs/promises'
import { ConfigError } from '../../config/problems.ts'
import { ERRORS, type RpcError } from '../../protocol/errors.ts'
import type { RecordedMessage, Recording, RecordingFileHeader } from '../../protocol/recording.ts'
import { Json } from '../../wire/json/json.ts'

const FORMAT = 'dragoman-recording'
const VERSION = 1
const HOW = 'export one in the console, or with GET /admin/recordings/export'

/** The exchanges of one call: the first request, and those with the answers to questions. */
export type RecordedCall = readonly [Recording, ...Recording[]]

/** Reads a file with recordings; rejects with a ConfigError that names the line. */
export const readRecordingFile = async (file: string): Promise<readonly RecordedCall[]> => {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new ConfigError(`cannot read ${file}: ${error.code === 'ENOENT' ? 'there is no such file' : error.message}`)
  })
  const [first = '', ...lines] = text.split('\n')
  checkHeader(parseLine(first, file, 1), file)
  const recordings = lines.flatMap((line, at) => (line.trim() === '' ? [] : [readRecording(line, file, at + 2)]))
  if (recordings.length === 0) throw new ConfigError(`${file} has no recordings: ${HOW}`)
  return joinCalls(recordings)
}

const parseLine = (line: string, file: string, number: number): unknown => {
  try {
    return JSON.parse(line)
  } catch {
    throw new ConfigError(`${file} is no recording: line ${number} is not JSON; ${HOW}`)
  }
}

const checkHeader = (header: unknown, file: string): void => {
  const { format, version } = (header ?? {}) as Partial<RecordingFileHeader>
  if (format !== FORMAT)
    throw new ConfigError(`${file} is no recording: its first line has no "format": "${FORMAT}"; ${HOW}`)
  if (version !== VERSION)
    throw new ConfigError(`${file} has version ${JSON.stringify(version)} of the format; this program reads ${VERSION}`)
}

const readRecording = (line: string, file: string, number: number): Recording => {
  const recording = parseLine(line, file, number) as Recording
  const isRecording =
    typeof recording?.id === 'string' && Array.isArray(recording.all) && recording.all.every(isMessage)
  if (isRecording) return recording
  throw new ConfigError(`${file} is damaged: line ${number} is not a recording with "id" and "all"; export it again`)
}

const isMessage = (message: RecordedMessage): boolean =>
  typeof message?.text === 'string' && typeof message.kind === 'string' && typeof message.side === 'string'

/** Joins a request with its retries; a retry whose first request is not in the file stands alone. */
const joinCalls = (recordings: readonly Recording[]): readonly RecordedCall[] => {
  const calls: Recording[][] = []
  const byId = new Map<string, Recording[]>()
  for (const recording of [...recordings].sort((a, b) => a.order - b.order)) {
    const call = recording.continues === undefined ? undefined : byId.get(recording.continues)
    if (call) call.push(recording)
    else calls.push([recording])
    byId.set(recording.id, call ?? (calls.at(-1) as Recording[]))
  }
  return calls as unknown as readonly RecordedCall[]
}

/** A recorded message as JSON; undefined if it was cut. */
export const parseMessage = ({ text, isCut }: RecordedMessage): Json | undefined => {
  if (isCut) return undefined
  try {
    return Json.parse(Buffer.from(text))
  } catch {
    return undefined
  }
}

/** The `error` of a recorded message. */
export const readError = (error: Json): RpcError => ({
  code: error.get('code')?.asNumber() ?? ERRORS.internal.code,
  message: error.get('message')?.asString() ?? 'Unknown error',
  data: error.get('data'),
})
