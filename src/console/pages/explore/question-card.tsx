import { createForm, formArguments, formProblems, textError } from '../../form/form-state.ts'
import { ModeSwitch, SchemaForm } from '../../form/schema-form.tsx'
import { isObject } from '../../mcp/messages.ts'
import { Button } from '../../parts/button.tsx'
import { isSafeLink } from '../../parts/text-link.tsx'
import { AnswerForm } from './answer-form.tsx'
import type { OpenQuestion } from './calls.ts'
import { useDraft } from './question-draft.ts'
import { RootsCard } from './roots-card.tsx'
import { SamplingCard } from './sampling-card.tsx'

export interface QuestionCardProps {
  readonly open: OpenQuestion
  readonly target: string
}

/** A question of the server: a form, a link, a message for a model, or the roots. */
export const QuestionCard = ({ open, target }: QuestionCardProps) => {
  const { method, params } = open.question
  const title =
    method === 'roots/list'
      ? 'The server asks for the roots of this client'
      : method === 'sampling/createMessage'
        ? 'The server asks the model of this client'
        : params.mode === 'url'
          ? 'The server asks you to open a page'
          : 'The server asks you'
  return (
    <section class="question" aria-label={title}>
      <h3>{title}</h3>
      {method === 'roots/list' ? (
        <RootsCard open={open} />
      ) : method === 'sampling/createMessage' ? (
        <SamplingCard open={open} target={target} />
      ) : params.mode === 'url' ? (
        <LinkQuestion open={open} />
      ) : (
        <FormQuestion open={open} />
      )}
    </section>
  )
}

const Message = ({ text }: { readonly text: unknown }) =>
  typeof text === 'string' ? <p class="question-text">{text}</p> : null

const respond = (open: OpenQuestion, result: Readonly<Record<string, unknown>>): void =>
  open.answer({ kind: 'result', result })

const FormQuestion = ({ open }: { readonly open: OpenQuestion }) => {
  const { message, requestedSchema } = open.question.params
  const schema = isObject(requestedSchema) ? requestedSchema : { type: 'object', properties: {} }
  const [form, setForm] = useDraft(open, 'form', () => createForm(schema))
  const [isForced, setForced] = useDraft(open, 'isForced', () => false)
  const problems = formProblems(schema, form)
  const accept = (): void => {
    if (textError(form)) return
    if (problems.length > 0 && !isForced) {
      setForm({ ...form, isAttempted: true })
      setForced(true)
      return
    }
    respond(open, { action: 'accept', content: formArguments(form) })
  }
  return (
    <AnswerForm onSubmit={accept}>
      <Message text={message} />
      <div class="block-head">
        <span class="explore-note">Your answer</span>
        <ModeSwitch form={form} onChange={setForm} />
      </div>
      <SchemaForm
        schema={schema}
        form={form}
        label="Answer"
        onChange={next => {
          setForced(false)
          setForm(next)
        }}
      />
      <Choices
        open={open}
        accept={isForced && problems.length > 0 ? 'Accept anyway' : 'Accept'}
        onAccept={accept}
        note={isForced && problems.length > 0 ? 'The answer does not fit what the server asked for.' : undefined}
        keys="mod+Enter"
      />
    </AnswerForm>
  )
}

/** A link is opened only by the user, who sees its host before. */
const LinkQuestion = ({ open }: { readonly open: OpenQuestion }) => {
  const { message, url } = open.question.params
  const text = typeof url === 'string' ? url : ''
  const isSafe = isSafeLink(text)
  const host = isSafe ? new URL(text).host : undefined
  const accept = (): void => {
    window.open(text, '_blank', 'noopener,noreferrer')
    respond(open, { action: 'accept' })
  }
  return (
    <AnswerForm>
      <Message text={message} />
      {isSafe ? (
        <p class="question-text">
          It leads to <strong class="mono">{host}</strong>
          <br />
          <span class="mono quiet">{text}</span>
        </p>
      ) : (
        <p class="field-error">This address cannot be opened: {text || 'there is none'}</p>
      )}
      <Choices open={open} accept={`Open ${host ?? 'the page'}`} onAccept={accept} isDisabled={!isSafe} />
    </AnswerForm>
  )
}

interface ChoicesProps {
  readonly open: OpenQuestion
  readonly accept: string
  readonly onAccept: () => void
  readonly isDisabled?: boolean
  readonly note?: string | undefined
  readonly keys?: string
}

const Choices = ({ open, accept, onAccept, isDisabled, note, keys }: ChoicesProps) => (
  <div class="question-actions">
    {note !== undefined && <span class="field-error">{note}</span>}
    <Button kind="primary" keys={keys} disabled={isDisabled} onClick={onAccept}>
      {accept}
    </Button>
    <Button onClick={() => respond(open, { action: 'decline' })}>Decline</Button>
    <Button kind="quiet" onClick={() => respond(open, { action: 'cancel' })}>
      Dismiss
    </Button>
  </div>
)
