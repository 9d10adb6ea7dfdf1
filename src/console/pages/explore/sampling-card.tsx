import { isObject } from '../../mcp/messages.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { Field, TextInputField } from '../../parts/field.tsx'
import { JsonTree } from '../../parts/json-tree.tsx'
import { Select } from '../../parts/select.tsx'
import { AnswerForm } from './answer-form.tsx'
import type { OpenQuestion } from './calls.ts'
import { useDraft } from './question-draft.ts'
import { ContentBlock } from './result/content-block.tsx'

const STOP_REASONS = ['endTurn', 'stopSequence', 'maxTokens', 'toolUse'] as const

/** What the server would send to a model. The console has none: the user writes the answer. */
export const SamplingCard = ({ open, target }: { readonly open: OpenQuestion; readonly target: string }) => {
  const { messages, systemPrompt, ...settings } = open.question.params
  const [text, setText] = useDraft(open, 'text', () => '')
  const [model, setModel] = useDraft(open, 'model', () => 'written-by-hand')
  const [stopReason, setStopReason] = useDraft<(typeof STOP_REASONS)[number]>(open, 'stopReason', () => 'endTurn')
  const send = (): void =>
    open.answer({
      kind: 'result',
      result: { role: 'assistant', model, stopReason, content: { type: 'text', text } },
    })
  return (
    <AnswerForm onSubmit={() => text !== '' && send()}>
      {typeof systemPrompt === 'string' && (
        <p class="question-text">
          <Badge>system</Badge> {systemPrompt}
        </p>
      )}
      {(Array.isArray(messages) ? messages : []).map((message, at) => (
        <div key={at} class="message">
          <Badge>{isObject(message) ? String(message.role) : 'message'}</Badge>
          {contentsOf(message).map((block, part) => (
            <ContentBlock key={part} block={block} target={target} label={`Message ${at + 1}`} />
          ))}
        </div>
      ))}
      {Object.keys(settings).length > 0 && <JsonTree value={settings} name="settings" openDepth={1} />}
      <TextInputField
        label="Answer of the model"
        isRequired
        hint="The console has no model: write what it would say"
        rows={3}
        value={text}
        onValue={setText}
      />
      <div class="question-row">
        <TextInputField label="Model" value={model} onValue={setModel} />
        <Field label="Stop reason">
          {control => (
            <Select
              {...control}
              value={stopReason}
              options={STOP_REASONS.map(value => ({ value, label: value }))}
              onChange={setStopReason}
            />
          )}
        </Field>
      </div>
      <div class="question-actions">
        <Button kind="primary" keys="mod+Enter" disabled={text === ''} onClick={send}>
          Send answer
        </Button>
        <Button onClick={() => open.answer({ kind: 'refuse', message: 'The user rejected the sampling request' })}>
          Reject
        </Button>
      </div>
    </AnswerForm>
  )
}

/** A message has one block, or since 2025-11-25 several. */
const contentsOf = (message: unknown): readonly unknown[] => {
  const content = isObject(message) ? message.content : message
  return Array.isArray(content) ? content : [content]
}
