import { createInterface, type Interface } from 'node:readline'
import type { Signal } from '../../protocol/cancellation.ts'
import { textOfValue, typesOf } from '../../protocol/schema-text.ts'
import { Json } from '../../wire/json/json.ts'
import { type FormField, readField } from './form-field.ts'
import { safeLine, safeText, styleOf, type Terminal } from './terminal.ts'

/** Asks the user in the terminal; questions go to stderr, so that stdout holds the result alone. */
export class TerminalDialog {
  readonly #terminal: Terminal
  readonly #interrupt: () => void
  readonly #typed: string[] = [] // lines that were typed or pasted before they were asked for
  #lines: Interface | undefined
  #receive: ((line: string | undefined) => void) | undefined

  constructor(terminal: Terminal, interrupt: () => void) {
    this.#terminal = terminal
    this.#interrupt = interrupt
  }

  say(text: string): void {
    this.#terminal.error.write(`${text}\n`)
  }

  /** One line; undefined at the end of the input, or if the question was withdrawn. */
  ask(prompt: string, withdrawn: Signal): Promise<string | undefined> {
    const lines = this.#open()
    const typed = this.#typed.shift()
    if (typed !== undefined) {
      this.say(`${prompt}${typed}`)
      return Promise.resolve(typed)
    }
    return new Promise(resolve => {
      const stop = withdrawn.onAbort(() => this.#receive?.(undefined))
      this.#receive = line => {
        this.#receive = undefined
        stop()
        resolve(line)
      }
      lines.setPrompt(prompt)
      lines.prompt()
    })
  }

  close(): void {
    this.#lines?.close()
    this.#lines = undefined
  }

  #open(): Interface {
    if (this.#lines) return this.#lines
    const { input, error } = this.#terminal
    const lines = createInterface({ input, output: error, terminal: true, historySize: 0 })
    lines.on('line', line => {
      if (this.#receive) this.#receive(line.trim())
      else this.#typed.push(line.trim())
    })
    lines.on('SIGINT', () => {
      this.#interrupt()
      this.close()
    })
    lines.on('close', () => {
      this.#lines = undefined
      this.#receive?.(undefined)
    })
    this.#lines = lines
    return lines
  }
}

/** Fills a form field by field; undefined if the user ended the input. */
export const askForm = async (
  fields: readonly FormField[],
  dialog: TerminalDialog,
  terminal: Terminal,
  withdrawn: Signal,
): Promise<Json | undefined> => {
  let content = Json.empty
  for (const field of fields) {
    const value = await askField(field, dialog, terminal, withdrawn)
    if (value === undefined) return undefined
    if (value !== 'skipped') content = content.with(field.name, value)
  }
  return content
}

const askField = async (
  field: FormField,
  dialog: TerminalDialog,
  terminal: Terminal,
  withdrawn: Signal,
): Promise<Json | 'skipped' | undefined> => {
  const { red } = styleOf(terminal.error, terminal.env)
  describeField(field, dialog, terminal)
  for (;;) {
    const text = await dialog.ask(promptOf(field), withdrawn)
    if (text === undefined) return undefined
    if (text === '' && field.fallback) return field.fallback
    if (text === '' && !field.isRequired) return 'skipped'
    const read = text === '' ? { problem: 'this field is required' } : readField(field, text)
    if ('value' in read) return read.value
    dialog.say(`  ${red('!')} ${safeLine(read.problem)}`)
  }
}

const describeField = ({ schema, choices }: FormField, dialog: TerminalDialog, { error, env }: Terminal): void => {
  const { dim } = styleOf(error, env)
  const description = schema.get('description')?.asString()
  if (description !== undefined) dialog.say(dim(`  ${safeText(description).replaceAll('\n', '\n  ')}`))
  choices?.forEach(({ title, value }, i) => {
    const text = textOfValue(value)
    dialog.say(`    ${i + 1}) ${safeLine(title === text ? text : `${title} (${text})`)}`)
  })
}

const promptOf = ({ name, schema, isRequired, fallback, isMany, choices }: FormField): string => {
  const title = schema.get('title')?.asString() ?? name
  const type = typesOf(schema)[0] ?? 'string'
  const kind = choices ? (isMany ? ', several with commas' : '') : (TYPE_WORDS[type] ?? '')
  const values = fallback?.kind === 'array' ? fallback.elements() : fallback ? [fallback] : []
  const shown = values.map(value =>
    value.kind === 'boolean' ? (value.asBoolean() ? 'yes' : 'no') : textOfValue(value),
  )
  const hint = fallback ? ` [${shown.join(', ')}]` : isRequired ? '' : ' (optional)'
  return `  ${safeLine(title)}${kind}${safeLine(hint) === '' ? '' : ` ${safeLine(hint)}`}: `
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  integer: ', a whole number',
  number: ', a number',
  boolean: ', yes or no',
}
