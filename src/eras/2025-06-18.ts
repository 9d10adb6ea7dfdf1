import { type RpcError, rpcError } from '../protocol/errors.ts'
import { Json } from '../wire/json.ts'
import type { Difference, Instead, Refusal, Unfit } from './difference.ts'
import { asPlainForm, foldChoices } from './form.ts'
import { mapCapabilities, mapList } from './members.ts'
import { joinReply, splitMessages, usesTools } from './sampling.ts'

/** 2025-06-18 against 2025-11-25: no tasks, every elicitation is a plain form, sampling is one block a message. */
export const difference: Difference = {
  up: { answer: asFullAnswer },
  down: { result: withoutTasks, error: asLinkText, question: asPlainQuestion, answer: asPlainAnswer },
}

function withoutTasks(method: string, result: Json): Json {
  if (method === 'tools/list') return mapList(result, 'tools', tool => tool.without('execution'))
  return mapCapabilities(method, result, known => known.without('tasks'))
}

function asPlainQuestion(method: string, params: Json): Json | Refusal {
  if (method === 'sampling/createMessage')
    return usesTools(params) ? refuse('tools in sampling') : splitMessages(params)
  if (method !== 'elicitation/create') return params
  return params.get('mode')?.isString('url') ? refuse('elicitation in mode url') : asPlainForm(params.without('mode'))
}

const refuse = (what: string): Refusal => ({ refusal: rpcError('invalidParams', `The client does not take ${what}`) })

function asPlainAnswer(method: string, result: Json): Json {
  return method === 'sampling/createMessage' ? joinReply(result) : result
}

function asFullAnswer(method: string, result: Json, question: Json): Json | Unfit {
  return method === 'elicitation/create' ? foldChoices(result, question) : result
}

const LINKS_REQUIRED = -32042

/** Nothing here opens links, so they are told in words: a model that called a tool can pass them on. */
function asLinkText(method: string, error: RpcError): RpcError | Instead {
  if (error.code !== LINKS_REQUIRED) return error
  const links = error.data?.get('elicitations')?.elements() ?? []
  const text = [error.message, ...links.map(linkText)].join('\n')
  if (method !== 'tools/call') return rpcError('internal', text, error.data)
  return { result: Json.of({ content: [{ type: 'text', text }], isError: true }) }
}

const linkText = (link: Json): string => ['message', 'url'].map(key => link.get(key)?.asString() ?? '').join('\n')
