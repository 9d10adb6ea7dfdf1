import { useRef, useState } from 'preact/hooks'
import type { ConfigIssue } from '../../../admin/api/config.ts'
import { Badge } from '../../parts/badge.tsx'
import { CopyButton } from '../../parts/copy-button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { plural } from '../../parts/format.ts'
import { IssueList } from './issue-list.tsx'
import { canEdit, changeText, checked, draft, draftText, edits, file, isChecking, issues } from './store.ts'

const LINE = 18 // pixels, as in the styles

/** The whole file as text: lines have numbers, problems their places. Secrets are hidden and kept. */
export const FileTab = () => {
  const area = useRef<HTMLTextAreaElement>(null)
  const [top, setTop] = useState(0)
  const text = draftText.value
  if (file.value?.text === undefined)
    return (
      <Empty
        icon="eye"
        title="The text is for owners"
        text="It may hold more than the tables show. Open the link that “dragoman console” prints."
      />
    )
  const wrong = new Map(
    issues.value.flatMap(issue => (issue.line === undefined ? [] : [[issue.line, issue.message] as const])),
  )
  const lines = text.split('\n').length
  // While edits of the forms are being put into the text, typing would lose them.
  const isWaiting = edits.value.length > 0 && (isChecking.value || checked.value === undefined)

  const goTo = ({ line = 1, column = 1 }: ConfigIssue): void => {
    const offset =
      text
        .split('\n')
        .slice(0, line - 1)
        .reduce((sum, each) => sum + each.length + 1, 0) +
      column -
      1
    area.current?.focus()
    area.current?.setSelectionRange(offset, offset)
    area.current?.scrollTo({ top: Math.max(0, (line - 5) * LINE) })
  }
  return (
    <div class="config-file">
      <div class="config-editor">
        <div class="config-lines" aria-hidden="true">
          <div style={{ transform: `translateY(${-top}px)` }}>
            {Array.from({ length: lines }, (_, at) => (
              <div key={at} class={wrong.has(at + 1) ? 'config-line-wrong' : undefined} title={wrong.get(at + 1)}>
                {at + 1}
              </div>
            ))}
          </div>
        </div>
        <textarea
          ref={area}
          class="mono"
          aria-label="Text of the file"
          aria-invalid={wrong.size > 0 || undefined}
          spellcheck={false}
          autocomplete="off"
          wrap="off"
          readOnly={!canEdit.value || isWaiting}
          value={text}
          onInput={({ currentTarget }) => changeText(currentTarget.value)}
          onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
        />
      </div>
      <footer class="config-file-foot">
        <span class="quiet">{plural(lines, 'line')}</span>
        {draft.value.text !== undefined && <Badge kind="accent">edited as text</Badge>}
        {/\$\{hidden:/.test(text) && (
          <span class="quiet">{'${hidden:…} stands for a secret of the file, which is kept.'}</span>
        )}
        <span class="config-grow" />
        <CopyButton text={() => text} label="Copy the text" />
      </footer>
      {issues.value.length > 0 && (
        <div class="config-file-issues" role="status">
          <IssueList issues={issues.value} onSelect={goTo} />
        </div>
      )}
    </div>
  )
}
