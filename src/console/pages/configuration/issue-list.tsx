import type { ConfigIssue } from '../../../admin/api/config.ts'
import { Icon } from '../../parts/icon.tsx'
import { issues } from './store.ts'

const pathText = (path: ConfigIssue['path']): string => path.join('.')

interface IssueListProps {
  readonly issues: readonly ConfigIssue[]
  readonly onSelect?: ((issue: ConfigIssue) => void) | undefined // goes to its place
}

/** Problems of the configuration, with their places. */
export const IssueList = ({ issues: shown, onSelect }: IssueListProps) => (
  <ul class="config-issues">
    {shown.map((issue, at) => (
      <li key={at}>
        <Icon name="warning" />
        <span>
          {issue.line !== undefined &&
            (onSelect ? (
              <button type="button" class="link" onClick={() => onSelect(issue)}>
                line {issue.line}, column {issue.column}
              </button>
            ) : (
              <span class="quiet">line {issue.line}</span>
            ))}{' '}
          {issue.path.length > 0 && <code>{pathText(issue.path)}</code>} {issue.message}
        </span>
      </li>
    ))}
  </ul>
)

/** The problems of an entry as a whole; those of its values are shown at their fields. */
export const EntryIssues = ({ path }: { readonly path: readonly string[] }) => {
  const own = issues.value.filter(issue => issue.path.join('\n') === path.join('\n'))
  return own.length === 0 ? null : (
    <div role="alert">
      <IssueList issues={own} />
    </div>
  )
}
