import { useEffect, useState } from 'preact/hooks'
import { messageOf } from '../../api.ts'
import { isObject } from '../../mcp/messages.ts'
import { Badge } from '../../parts/badge.tsx'
import { Button } from '../../parts/button.tsx'
import { plural } from '../../parts/format.ts'
import { toast } from '../../parts/toast.tsx'
import { connection, updates, watched, watchResource } from './connection.ts'
import { formKey } from './forms.ts'
import { Definitions, ItemHead } from './item-head.tsx'
import { useTexts } from './prompt-detail.tsx'
import { RequestSection, sendItem } from './request-section.tsx'
import { fillTemplate, templateVariables } from './template-uri.ts'
import { TextArguments } from './text-arguments.tsx'
import type { ItemDetailProps } from './tool-detail.tsx'

/** A resource: read, and watched for updates. */
export const ResourceDetail = ({ item, target }: ItemDetailProps) => {
  const uri = item.key
  return (
    <div class="item-detail">
      <ItemHead item={item} />
      <RequestSection
        target={target}
        kind="resources"
        subject={uri}
        action="Read"
        method="resources/read"
        params={{ uri }}
        canSend
      >
        <WatchButton uri={uri} target={target} kind="resources" subject={uri} />
      </RequestSection>
      <Definitions item={item} />
    </div>
  )
}

interface WatchButtonProps {
  readonly uri: string
  readonly target: string
  readonly kind: 'resources' | 'templates'
  readonly subject: string
}

/** Watches a resource: each update is counted, and reads it again. */
const WatchButton = ({ uri, target, kind, subject }: WatchButtonProps) => {
  const [isBusy, setBusy] = useState(false)
  const about = connection.value?.about
  const resources = isObject(about?.capabilities.resources) ? about.capabilities.resources : {}
  const isOn = watched.value.has(uri)
  const count = updates.value.get(uri) ?? 0
  useEffect(() => {
    if (isOn && count > 0) sendItem({ target, kind, subject, method: 'resources/read', params: { uri } })
  }, [count])
  const toggle = (): void => {
    setBusy(true)
    watchResource(uri, !isOn)
      .catch((error: unknown) => toast(`Not watched: ${messageOf(error)}`, { kind: 'error' }))
      .finally(() => setBusy(false))
  }
  if (resources.subscribe !== true) return null
  return (
    <>
      <Button icon="eye" isBusy={isBusy} aria-pressed={isOn} onClick={toggle}>
        {isOn ? 'Stop watching' : 'Watch'}
      </Button>
      {isOn && <Badge kind="ok">{count === 0 ? 'live' : `live · ${plural(count, 'update')}`}</Badge>}
    </>
  )
}

/** A template: fields for its variables make the URI of a resource. */
export const TemplateDetail = ({ item, target }: ItemDetailProps) => {
  const template = item.key
  const names = templateVariables(template)
  const { values, setValues } = useTexts(formKey(target, 'templates', template))
  const [isAttempted, setAttempted] = useState(false)
  const uri = fillTemplate(template, values)
  const isComplete = names.every(name => (values[name] ?? '') !== '') || !/[{}]/.test(uri)
  return (
    <div class="item-detail">
      <ItemHead item={item} />
      <section class="arguments" aria-label="Variables">
        <h3>Variables</h3>
        <TextArguments
          list={names.map(name => ({ name, isRequired: !isOptional(template, name) }))}
          values={values}
          isAttempted={isAttempted}
          completes={{ type: 'ref/resource', uri: template }}
          onChange={setValues}
        />
        <p class="explore-note">
          URI: <span class="mono">{uri}</span>
        </p>
      </section>
      <RequestSection
        target={target}
        kind="templates"
        subject={template}
        action="Read"
        method="resources/read"
        params={{ uri }}
        canSend={isComplete}
        onBlocked={() => setAttempted(true)}
      >
        {isComplete && <WatchButton uri={uri} target={target} kind="templates" subject={template} />}
      </RequestSection>
      <Definitions item={item} />
    </div>
  )
}

/** Variables of a query may be left out. */
const isOptional = (template: string, name: string): boolean =>
  [...template.matchAll(/\{[?&]([^{}]*)\}/g)].some(([, list = '']) => templateVariables(`{${list}}`).includes(name))
