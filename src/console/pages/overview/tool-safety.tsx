import { useEffect, useState } from 'preact/hooks'
import type { ApprovalResult, Quarantine } from '../../../admin/api/pins.ts'
import {
  type DefinitionChange,
  type FlaggedTool,
  type QuarantinedTool,
  TOOL_RULES,
  type ToolFlag,
} from '../../../protocol/pins.ts'
import type { ServerStatus } from '../../../protocol/status.ts'
import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Callout } from '../../parts/callout.tsx'
import { plural } from '../../parts/format.ts'
import { toast } from '../../parts/toast.tsx'
import { isOwner } from '../../session.ts'
import { NEEDS_OWNER, ownerTitle, PaneSection } from '../connect/pane-parts.tsx'

const MOST_FLAGS = 20

/** Tools of a server that are in quarantine, and those that break a rule of docs/tool-safety.md. */
export const ToolSafety = ({ status }: { readonly status: ServerStatus }) => {
  const { pins, flags = [] } = status
  return (
    <>
      {pins && <QuarantineSection server={status.name} quarantined={pins.quarantined} pinned={pins.pinned} />}
      {flags.length > 0 && <FlagSection flags={flags} />}
    </>
  )
}

interface QuarantineProps {
  readonly server: string
  readonly quarantined: number
  readonly pinned: number
}

const QuarantineSection = ({ server, quarantined, pinned }: QuarantineProps) => {
  const [tools, setTools] = useState<readonly QuarantinedTool[]>([])
  const [failure, setFailure] = useState<string | undefined>()
  const [isBusy, setBusy] = useState(false)
  const canSee = isOwner.value
  const load = async (): Promise<void> => {
    try {
      const found = await api.get<Quarantine>('admin/quarantine')
      setTools(found.tools.filter(tool => tool.server === server))
      setFailure(undefined)
    } catch (error) {
      setFailure(messageOf(error))
    }
  }
  useEffect(() => {
    if (canSee) void load()
  }, [server, quarantined, canSee])

  const approve = async (some: readonly QuarantinedTool[]): Promise<void> => {
    setBusy(true)
    try {
      const named = some.map(({ name, hash }) => ({ server, name, hash }))
      const { approved } = await api.post<ApprovalResult>('admin/quarantine/approve', { tools: named })
      toast(`${plural(approved.length, 'tool')} approved`, { kind: 'ok' })
    } catch (error) {
      toast(messageOf(error), { kind: 'error' })
    }
    await load()
    setBusy(false)
  }
  const shared = { title: ownerTitle(), disabled: isBusy || !canSee }
  const all = tools.length > 1 && (
    <Button {...shared} onClick={() => void approve(tools)}>
      Approve all
    </Button>
  )
  return (
    <PaneSection title="Quarantine" actions={all}>
      {quarantined === 0 && <p class="quiet">{plural(pinned, 'tool')} pinned, none in quarantine.</p>}
      {quarantined > 0 && !canSee && (
        <p class="quiet">
          {plural(quarantined, 'tool')} in quarantine. {NEEDS_OWNER}
        </p>
      )}
      {failure !== undefined && <Callout kind="error">{failure}</Callout>}
      {tools.map(tool => (
        <article key={`${tool.name}\n${tool.hash}`} class="quarantined-tool" aria-label={`Tool ${tool.name}`}>
          <header>
            <strong>{tool.name}</strong> <span class="quiet">{tool.isNew ? 'is new' : 'has changed'}</span>
            <Button {...shared} onClick={() => void approve([tool])}>
              Approve {tool.name}
            </Button>
          </header>
          {tool.principals.length > 0 && (
            <p class="quiet">For {tool.principals.map(each => each || 'anonymous').join(', ')}</p>
          )}
          <FlagList flags={tool.flags} />
          {tool.changes.map(change => (
            <Change key={change.at} change={change} />
          ))}
          {tool.changes.length === 0 && <Definition text={tool.definition} />}
        </article>
      ))}
    </PaneSection>
  )
}

const Change = ({ change: { at, before, after } }: { readonly change: DefinitionChange }) => (
  <figure class="tool-change">
    <figcaption>{at}</figcaption>
    {before !== undefined && (
      <del>
        <pre>{before}</pre>
      </del>
    )}
    {after !== undefined && (
      <ins>
        <pre>{after}</pre>
      </ins>
    )}
  </figure>
)

const Definition = ({ text }: { readonly text: string | undefined }) =>
  text === undefined ? (
    <p class="quiet">Its definition is too large to be shown.</p>
  ) : (
    <pre class="server-stderr" role="group" tabIndex={0} aria-label="The definition">
      {JSON.stringify(JSON.parse(text), undefined, 2)}
    </pre>
  )

const FlagList = ({ flags }: { readonly flags: readonly ToolFlag[] }) => (
  <>
    {flags.map(flag => (
      <Callout key={`${flag.rule} ${flag.at}`} kind="warn">
        {TOOL_RULES[flag.rule]}, in {flag.at}: {flag.detail}
      </Callout>
    ))}
  </>
)

const FlagSection = ({ flags }: { readonly flags: readonly FlaggedTool[] }) => (
  <PaneSection title="Warnings about tools">
    <ul class="tool-flags">
      {flags.slice(0, MOST_FLAGS).map(({ tool, flag }) => (
        <li key={`${tool} ${flag.rule} ${flag.at}`}>
          <strong>{tool}</strong>: {TOOL_RULES[flag.rule]}, in {flag.at}: <span class="quiet">{flag.detail}</span>
        </li>
      ))}
    </ul>
    {flags.length > MOST_FLAGS && <p class="quiet">and {flags.length - MOST_FLAGS} more</p>}
  </PaneSection>
)
