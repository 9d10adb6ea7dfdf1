import { randomBytes } from 'node:crypto'
import type { Json } from '../../../wire/json/json.ts'
import type { BodyPlan, PartPlan } from '../plan.ts'
import { plainText, writeQuery } from './write-value.ts'

/** A body and its media type. */
export interface WrittenBody {
  readonly contentType: string
  readonly bytes: Buffer
}

const BASE64 = /^[A-Za-z0-9+/\-_\s]*={0,2}\s*$/
const DEFAULT_PART: PartPlan = { style: 'form', explode: true }

/** Writes the body of a request; throws an Error that says which argument is wrong. */
export const writeBody = (plan: BodyPlan, value: Json): WrittenBody => {
  switch (plan.kind) {
    case 'json':
      return { contentType: plan.mediaType, bytes: value.toBytes() }
    case 'text':
      return { contentType: plan.mediaType, bytes: Buffer.from(plainText(value)) }
    case 'binary':
      return { contentType: plan.mediaType, bytes: fromBase64(plainText(value), plan.argument) }
    case 'form':
      return { contentType: plan.mediaType, bytes: Buffer.from(writeForm(plan, value)) }
    case 'multipart':
      return writeMultipart(plan, value)
  }
}

/** Node.js ignores what is no base64; the API would get a damaged file. */
const fromBase64 = (text: string, argument: string): Buffer => {
  const data = text.replace(/^data:[^,]*;base64,/, '')
  if (!BASE64.test(data)) throw new Error(`Argument "${argument}" must be base64`)
  return Buffer.from(data, 'base64')
}

const partOf = (plan: BodyPlan, name: string): PartPlan =>
  Object.hasOwn(plan.parts, name) ? (plan.parts[name] ?? DEFAULT_PART) : DEFAULT_PART

const membersOfForm = (plan: BodyPlan, value: Json): [string, Json][] => {
  if (!value.isObject) throw new Error(`Argument "${plan.argument}" must be an object`)
  return value.entries().filter(([, member]) => member.kind !== 'null')
}

const writeForm = (plan: BodyPlan, value: Json): string =>
  membersOfForm(plan, value)
    .flatMap(([name, member]) => {
      const part = partOf(plan, name)
      const isNested = member.isObject && !Object.hasOwn(plan.parts, name)
      return writeQuery(name, member, isNested ? { ...part, isJson: true } : part)
    })
    .join('&')

const writeMultipart = (plan: BodyPlan, value: Json): WrittenBody => {
  const boundary = `dragoman-${randomBytes(16).toString('hex')}`
  const pieces: Buffer[] = []
  const add = (name: string, mediaType: string | undefined, filename: string | undefined, bytes: Buffer): void => {
    const file = filename === undefined ? '' : `; filename="${quoted(filename)}"`
    const type = mediaType === undefined ? '' : `Content-Type: ${mediaType}\r\n`
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"${file}\r\n${type}\r\n`
    pieces.push(Buffer.from(head), bytes, Buffer.from('\r\n'))
  }
  for (const [name, member] of membersOfForm(plan, value)) {
    const part = partOf(plan, name)
    // Each item of a list is a part of its own, with the same name.
    for (const item of member.kind === 'array' && !part.isJson ? member.elements() : [member]) {
      if (part.isFile) {
        const { bytes, filename, mediaType } = readFileArgument(item, name)
        add(name, mediaType ?? part.mediaType ?? 'application/octet-stream', filename ?? name, bytes)
      } else {
        const isJson = item.isObject || item.kind === 'array' || part.isJson
        add(name, part.mediaType ?? (isJson ? 'application/json' : undefined), undefined, Buffer.from(plainText(item)))
      }
    }
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  const type = plan.mediaType.split(';')[0]?.trim() ?? 'multipart/form-data'
  return { contentType: `${type}; boundary=${boundary}`, bytes: Buffer.concat(pieces) }
}

const readFileArgument = (item: Json, name: string) => {
  const data = item.isObject ? item.get('data')?.asString() : item.asString()
  if (data === undefined) throw new Error(`Argument "body.${name}" must have its bytes in "data", as base64`)
  const mediaType = item.isObject ? item.get('mimeType')?.asString() : undefined
  if (mediaType !== undefined && !/^[\w!#$&^.+-]+\/[\w!#$&^.+-]+$/.test(mediaType))
    throw new Error(`Argument "body.${name}.mimeType" is no media type`)
  return {
    bytes: fromBase64(data, `body.${name}.data`),
    filename: item.isObject ? item.get('filename')?.asString() : undefined,
    mediaType,
  }
}

/** As browsers write names in multipart bodies. */
const quoted = (text: string): string => text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A')
