import { useState } from 'preact/hooks'
import type { ConfigObject } from '../../../admin/api/config.ts'
import type { ServerToolSizes } from '../../../admin/api/servers.ts'
import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { plural } from '../../parts/format.ts'
import { Search } from '../../parts/search.tsx'
import { toast } from '../../parts/toast.tsx'
import { allowedTools, isToolAllowed, withAllowedTools } from './allowed-tools.ts'

interface ToolPickerProps {
  readonly entry: ConfigObject // of the workspace
  readonly servers: readonly string[] // its members
  readonly onChange: (next: ConfigObject) => void
}

interface PickableTool {
  readonly path: string // `<server>/<tool>`
  readonly tokens: number
}

/** Chooses the tools that a workspace shows, of those that its servers list now. */
export const ToolPicker = ({ entry, servers, onChange }: ToolPickerProps) => {
  const [tools, setTools] = useState<readonly PickableTool[] | undefined>()
  const [text, setText] = useState('')
  const globs = allowedTools(entry)
  if (typeof entry.policy === 'string')
    return (
      <p class="field-hint">
        Its tools are those of the policy {entry.policy}: change that one, or choose none to pick tools here.
      </p>
    )
  const load = async (): Promise<void> => {
    const lists = servers.map(async server => {
      const { tools } = await api.get<ServerToolSizes>(`admin/servers/${encodeURIComponent(server)}/tool-sizes`)
      return tools.map(({ name, tokens }) => ({ path: `${server}/${name}`, tokens }))
    })
    const found = await Promise.allSettled(lists)
    setTools(found.flatMap(list => (list.status === 'fulfilled' ? list.value : [])))
    for (const list of found) if (list.status === 'rejected') toast(messageOf(list.reason), { kind: 'error' })
  }
  if (!tools)
    return (
      <div class="field config-members">
        <Button onClick={() => void load()}>Pick tools…</Button>
        <p class="field-hint">
          {globs === undefined
            ? 'It shows all tools of its servers.'
            : `It shows what ${plural(globs.length, 'pattern')} of its policy name.`}
        </p>
      </div>
    )
  const picked = tools.filter(({ path }) => isToolAllowed(globs, path)).map(({ path }) => path)
  const shown = tools.filter(({ path }) => path.toLowerCase().includes(text.toLowerCase()))
  const set = (paths: readonly string[], isPicked: boolean): void => {
    const next = new Set(picked)
    for (const path of paths) isPicked ? next.add(path) : next.delete(path)
    onChange(
      withAllowedTools(
        entry,
        tools.map(({ path }) => path).filter(path => next.has(path)),
      ),
    )
  }
  const tokens = tools.filter(({ path }) => picked.includes(path)).reduce((sum, tool) => sum + tool.tokens, 0)
  return (
    <fieldset class="field config-members">
      <legend>
        Tools: {picked.length} of {tools.length}, about {tokens} tokens
      </legend>
      <Search
        label="Search tools"
        value={text}
        onInput={setText}
        count={{ shown: shown.length, total: tools.length }}
      />
      <p class="config-pick-all">
        <Button
          onClick={() =>
            set(
              shown.map(({ path }) => path),
              true,
            )
          }
        >
          Pick all shown
        </Button>
        <Button
          onClick={() =>
            set(
              shown.map(({ path }) => path),
              false,
            )
          }
        >
          Pick none shown
        </Button>
      </p>
      <ul>
        {shown.map(({ path, tokens }) => (
          <li key={path}>
            <label class="config-check">
              <input
                type="checkbox"
                checked={picked.includes(path)}
                onChange={() => set([path], !picked.includes(path))}
              />
              <span class="truncate">{path}</span> <span class="quiet">{tokens}</span>
            </label>
          </li>
        ))}
      </ul>
      <p class="field-hint">A tool that a server adds later is not shown until it is picked.</p>
    </fieldset>
  )
}
