import { useRef, useState } from 'preact/hooks'
import { MODERN } from '../../../protocol/revisions.ts'
import { type FormState, formArguments, formProblems, textError } from '../../form/form-state.ts'
import { ModeSwitch, SchemaForm } from '../../form/schema-form.tsx'
import { useShortcuts } from '../../keys.ts'
import { withCallMeta } from '../../mcp/client-settings.ts'
import { isObject, type JsonObject } from '../../mcp/messages.ts'
import { Button } from '../../parts/button.tsx'
import { plural } from '../../parts/format.ts'
import { appUriOf } from './app/app-messages.ts'
import { AppView } from './app/app-view.tsx'
import { CallView, isCancelledByEsc } from './call-view.tsx'
import { latestCall, startCall } from './calls.ts'
import { clientSettings, connection, targetUrl } from './connection.ts'
import { CopyMenu } from './copy-menu.tsx'
import { forgetForm, formKey, formOf, keepForm } from './forms.ts'
import { Definitions, ItemHead } from './item-head.tsx'
import type { ExploreItem } from './kinds.ts'
import { TaskButton } from './task-button.tsx'

export interface ItemDetailProps {
  readonly item: ExploreItem
  readonly target: string
}

const NO_ARGUMENTS: JsonObject = { type: 'object', properties: {} }

/** A tool: its description, the form for its arguments, the call and what came of it. */
export const ToolDetail = ({ item, target }: ItemDetailProps) => {
  const { definition, key: name } = item
  const schema = isObject(definition.inputSchema) ? definition.inputSchema : NO_ARGUMENTS
  const key = formKey(target, 'tools', name)
  const form = formOf(key, schema)
  const [warned, setWarned] = useState<FormState | undefined>(undefined)
  const body = useRef<HTMLDivElement>(null)
  const record = latestCall(target, 'tools', name)
  const result = record?.state.value.result?.result
  const app = appUriOf(definition)
  const isRunning = record?.state.value.phase === 'running'
  const canCancel = isCancelledByEsc(record)
  const problems = formProblems(schema, form)
  const isUnreadable = textError(form) !== undefined
  const params = (): JsonObject => withCallMeta({ name, arguments: formArguments(form) }, clientSettings.peek())

  const call = (isForced = false): void => {
    const current = connection.peek()
    if (!current || isUnreadable) return
    const attempted = form.isAttempted || problems.length === 0 ? form : { ...form, isAttempted: true }
    keepForm(key, attempted)
    if (problems.length > 0 && !isForced) {
      setWarned(attempted)
      requestAnimationFrame(() => body.current?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
      return
    }
    const { client, revision } = current
    startCall({
      client,
      target,
      revision,
      kind: 'tools',
      method: 'tools/call',
      subject: name,
      params: params(),
      inputSchema: schema,
    })
  }
  useShortcuts('Call', [
    { keys: 'mod+Enter', label: 'Call the tool', isGlobal: true, run: () => call() },
    ...(canCancel ? [{ keys: 'Escape', label: 'Cancel the call', isGlobal: true, run: () => record?.cancel() }] : []),
  ])
  const isPlain = Object.keys(schema).every(keyword => ['type', 'properties', '$schema'].includes(keyword))
  const hasArguments = !isPlain || Object.keys(isObject(schema.properties) ? schema.properties : {}).length > 0

  return (
    <div ref={body} class="item-detail">
      <ItemHead item={item} />
      <section class="arguments" aria-label="Arguments">
        <div class="block-head">
          <h3>{hasArguments || form.mode === 'json' ? 'Arguments' : 'No arguments'}</h3>
          <ModeSwitch form={form} onChange={next => keepForm(key, next)} />
          <Button kind="quiet" onClick={() => forgetForm(key)}>
            Reset
          </Button>
        </div>
        <SchemaForm schema={schema} form={form} label="Arguments" onChange={next => keepForm(key, next)} />
      </section>
      <div class="call-actions">
        <Button
          kind="primary"
          icon="play"
          keys="mod+Enter"
          disabled={isUnreadable || connection.value === undefined}
          onClick={() => call()}
        >
          {isRunning ? 'Call again' : 'Call'}
        </Button>
        <CopyMenu
          request={() => ({
            url: targetUrl(target),
            revision: connection.peek()?.revision ?? MODERN,
            method: 'tools/call',
            params: params(),
            inputSchema: schema,
          })}
        />
        <TaskButton target={target} tool={name} canStart={!isUnreadable} args={() => formArguments(form)} />
        {warned && problems.length > 0 && (
          <span class="call-warning" role="status">
            {plural(problems.length, 'problem')} in the arguments.{' '}
            <button type="button" class="link" onClick={() => call(true)}>
              Call anyway
            </button>
          </span>
        )}
      </div>
      {record && <CallView key={record.id} record={record} />}
      {record && result && app !== undefined && (
        <AppView key={`app ${record.id}`} uri={app} args={record.params.arguments} result={result} />
      )}
      <Definitions item={item} />
    </div>
  )
}
