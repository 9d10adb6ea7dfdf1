import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Question } from '../../protocol/exchange.ts'
import { Json } from '../../wire/json/json.ts'
import { type Flags, textOf, textsOf, UsageError } from '../usage.ts'
import { askForm, TerminalDialog } from './ask-form.ts'
import type { Client } from './client-command.ts'
import { ClientError, EXIT } from './exit-codes.ts'
import { type FormField, fieldsOf, readField } from './form-field.ts'
import { openInBrowser, runSampling } from './programs.ts'
import type { ClientOffer } from './running-command.ts'
import { isInteractive, safeLine, safeText, styleOf } from './terminal.ts'
import { readPairs } from './words.ts'

export const QUESTION_FLAGS: Flags = {
  answer: { value: 'KEY=VALUE', many: true, help: 'answer this field of a form that the server shows (repeatable)' },
  accept: { help: 'accept what the server asks; forms get --answer and defaults, links are printed' },
  decline: { help: 'decline what the server asks' },
  'sampling-command': {
    value: 'COMMAND',
    help: 'let the server use a model: COMMAND reads the request and writes the reply',
  },
  root: { value: 'DIR', many: true, help: 'let the server know this folder as a root (repeatable)' },
}

/** Answers the questions of servers: in the terminal, or as the flags say. */
export interface QuestionAnswers {
  readonly offer: ClientOffer
  answer(question: Question): Promise<Json>
  close(): void
}

interface QuestionOptions {
  readonly pause: () => void // called before something is written to the terminal
}

export const createQuestions = (client: Client, { pause }: QuestionOptions): QuestionAnswers => {
  const { flags, terminal, interrupted } = client
  if (flags.accept && flags.decline) throw new UsageError('--accept and --decline do not go together')
  const answers = readPairs(textsOf(flags, 'answer'))
  const roots = textsOf(flags, 'root').map(folder => resolve(folder))
  const samplingCommand = textOf(flags, 'sampling-command')
  const dialog = new TerminalDialog(terminal, () =>
    interrupted.abort({ kind: 'cancelled', text: 'interrupted by the user' }),
  )
  let last: Promise<unknown> = Promise.resolve()

  /** One question at a time: they share the terminal. */
  const queued = <T>(ask: () => Promise<T>): Promise<T> => {
    const next = last.then(ask, ask)
    last = next
    return next
  }

  const used = new Set<string>()
  const answerForm = async (question: Question): Promise<Json> => {
    const fields = fieldsOf(question.params.get('requestedSchema') ?? Json.empty)
    const given = fillFrom(fields, answers)
    for (const { name } of fields) used.add(name)
    const open = given.missing.length > 0 || !(flags.accept || answers.size > 0)
    if (flags.decline) return DECLINE
    if (!open) return Json.of({ action: 'accept', content: given.content })
    if (!isInteractive(terminal)) throw new ClientError(formHelp(question, fields, given.missing), EXIT.usage)
    pause()
    introduce(question)
    const rest = fields.filter(({ name }) => !answers.has(name))
    const typed = await askForm(rest, dialog, terminal, question.withdrawn)
    if (!typed) return CANCEL
    const content = typed.entries().reduce((all, [name, value]) => all.with(name, value), given.content)
    const decision = await decide('  Send this? [Y]es, [n]o, [c]ancel: ', 'y', question)
    return decision === 'y' ? Json.of({ action: 'accept', content }) : decision === 'n' ? DECLINE : CANCEL
  }

  const answerUrl = async (question: Question): Promise<Json> => {
    const url = safeLine(question.params.get('url')?.asString() ?? '')
    if (flags.decline) return DECLINE
    if (flags.accept) {
      client.note(`the server asks to open ${url}`)
      return ACCEPT
    }
    if (!isInteractive(terminal)) throw new ClientError(urlHelp(question, url), EXIT.usage)
    pause()
    introduce(question)
    const parsed = URL.parse(url)
    dialog.say(`  ${url}`)
    if (!parsed || !/^https?:$/.test(parsed.protocol)) dialog.say('  This is no web address; it will not be opened.')
    else dialog.say(`  The link leads to ${styleOf(terminal.error, terminal.env).bold(parsed.host)}.`)
    const decision = await decide('  Open it? [y]es, [N]o, [c]ancel: ', 'n', question)
    if (decision !== 'y') return decision === 'n' ? DECLINE : CANCEL
    if (parsed && /^https?:$/.test(parsed.protocol) && !(await openInBrowser(url, terminal.env)))
      dialog.say('  No browser could be started: open the link yourself.')
    return ACCEPT
  }

  const decide = async (prompt: string, fallback: 'y' | 'n', { withdrawn }: Question): Promise<'y' | 'n' | 'c'> => {
    for (;;) {
      const text = await dialog.ask(prompt, withdrawn)
      if (text === undefined) return 'c'
      const letter = text === '' ? fallback : text.charAt(0).toLowerCase()
      if (letter === 'y' || letter === 'n' || letter === 'c') return letter
    }
  }

  const introduce = ({ params }: Question): void => {
    const { bold } = styleOf(terminal.error, terminal.env)
    dialog.say(`${bold('The server asks:')} ${safeText(params.get('message')?.asString() ?? '')}`)
  }

  return {
    offer: {
      capabilities: Json.of({
        elicitation: { form: {}, url: {} },
        ...(samplingCommand !== undefined && { sampling: {} }),
        ...(roots.length > 0 && { roots: {} }),
      }),
    },
    answer: question => {
      const { method, params } = question
      if (method === 'roots/list') return Promise.resolve(rootsResult(roots))
      if (method === 'sampling/createMessage' && samplingCommand !== undefined)
        return runSampling(samplingCommand, params)
      if (method !== 'elicitation/create')
        return Promise.reject(
          new ClientError(`the server asked for ${method}, which this client does not know`, EXIT.protocol),
        )
      return queued(() => (params.get('mode')?.asString() === 'url' ? answerUrl(question) : answerForm(question)))
    },
    close: () => {
      dialog.close()
      const unused = [...answers.keys()].filter(name => !used.has(name))
      if (unused.length > 0) client.note(`no question had a field ${unused.join(', ')}; --answer was not used for it`)
    },
  }
}

const ACCEPT = Json.of({ action: 'accept' })
const DECLINE = Json.of({ action: 'decline' })
const CANCEL = Json.of({ action: 'cancel' })

const rootsResult = (roots: readonly string[]): Json =>
  Json.of({ roots: roots.map(root => ({ uri: pathToFileURL(root).href, name: basename(root) })) })

interface FilledForm {
  readonly content: Json
  readonly missing: readonly FormField[] // required, and not answered
}

/** Fills a form from --answer and the defaults. */
const fillFrom = (fields: readonly FormField[], answers: ReadonlyMap<string, string>): FilledForm => {
  let content = Json.empty
  const missing: FormField[] = []
  for (const field of fields) {
    const text = answers.get(field.name)
    if (text !== undefined) {
      const read = readField(field, text)
      if ('problem' in read) throw new ClientError(`--answer ${field.name}: ${read.problem}`, EXIT.usage)
      content = content.with(field.name, read.value)
    } else if (field.fallback) content = content.with(field.name, field.fallback)
    else if (field.isRequired) missing.push(field)
  }
  return { content, missing }
}

const formHelp = ({ params }: Question, fields: readonly FormField[], missing: readonly FormField[]): string => {
  const message = safeLine(params.get('message')?.asString() ?? '')
  const named = (missing.length > 0 ? missing : fields).map(({ name }) => `--answer ${name}=VALUE`)
  const pass = named.length > 0 ? named.join(' ') : '--accept'
  return `the server asks "${message}", and there is no terminal to answer; pass ${pass}, or --decline`
}

const urlHelp = ({ params }: Question, url: string): string =>
  `the server asks "${safeLine(params.get('message')?.asString() ?? '')}" to open ${url}, and there is no terminal to ` +
  'answer; pass --accept, or --decline'
