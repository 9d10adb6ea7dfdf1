import { ERRORS, type RpcError, rpcError } from '../protocol/errors.ts'
import { Json } from '../wire/json/json.ts'
import { mapCapabilities, mapList } from './content.ts'
import type { ErrorAsResult, InvalidAnswer, RevisionDifference } from './difference.ts'
import { asPlainForm, foldChoices } from './form.ts'
import { joinReply, splitMessages, usesTools } from './sampling.ts'

/**
 * 2025-06-18 against 2025-11-25: no tasks, forms are plain, sampling is one block a message. Links to open and tools in
 * sampling go to the clients that declare them.
 */
export const difference: RevisionDifference = {
  up: { answer: asFullAnswer },
  down: { result: withoutTasks, error: asLinkText, question: asPlainQuestion, answer: asPlainAnswer },
}

/** Clients of this revision cannot call the methods of tasks, so nothing may offer them. */
function withoutTasks(method: string, result: Json): Json {
  if (method === 'tools/list') return mapList(result, 'tools', tool => tool.without('execution'))
  return mapCapabilities(method, result, known => known.without('tasks'))
}

/** A client that supports tools in sampling accepts several blocks in a message, and needs the results of a tool together. */
function asPlainQuestion(method: string, params: Json): Json {
  if (method === 'sampling/createMessage') return usesTools(params) ? params : splitMessages(params)
  return method === 'elicitation/create' ? asPlainForm(params) : params
}

function asPlainAnswer(method: string, result: Json): Json {
  return method === 'sampling/createMessage' ? joinReply(result) : result
}

function asFullAnswer(method: string, result: Json, question: Json): Json | InvalidAnswer {
  return method === 'elicitation/create' ? foldChoices(result, question) : result
}

/** A client that cannot open links gets them as text: a model that called a tool can pass them on. */
function asLinkText(method: string, error: RpcError, _params: Json, capabilities: Json): RpcError | ErrorAsResult {
  if (error.code !== ERRORS.urlElicitationRequired.code || capabilities.at('elicitation', 'url')) return error
  const links = error.data?.get('elicitations')?.elements() ?? []
  const text = [error.message, ...links.map(linkText)].join('\n')
  if (method !== 'tools/call') return rpcError('internal', text, error.data)
  return { result: Json.of({ content: [{ type: 'text', text }], isError: true }) }
}

const linkText = (link: Json): string => ['message', 'url'].map(key => link.get(key)?.asString() ?? '').join('\n')
