import { api, messageOf } from '../../api.ts'
import { Button } from '../../parts/button.tsx'
import { Empty } from '../../parts/empty.tsx'
import { toast } from '../../parts/toast.tsx'
import { hrefTo } from '../../router.ts'
import { isOwner } from '../../session.ts'
import { isFiltered, type RecordingFilter } from './filters.ts'
import { RECORDINGS, type RecorderFacts, type RecordingsModel } from './recordings-model.ts'

/** Switches the recorder; an error is shown to the user. */
export const switchRecorder = (model: RecordingsModel, isOn: boolean): void => {
  api.patch<RecorderFacts>(RECORDINGS, { isOn }).then(
    facts => {
      model.facts.value = { ...model.facts.peek(), ...facts }
    },
    (error: unknown) => void toast(messageOf(error), { kind: 'error' }),
  )
}

interface NoRecordingsProps {
  readonly model: RecordingsModel
  readonly filter: RecordingFilter
  readonly onFilter: (filter: RecordingFilter) => void
}

/** In place of the list: why it is empty, and what to do next. */
export const NoRecordings = ({ model, filter, onFilter }: NoRecordingsProps) => {
  if (model.problem.value !== undefined)
    return (
      <Empty icon="warning" title="The recordings cannot be read" text={model.problem.value}>
        <Button icon="restart" onClick={() => void model.load()}>
          Try again
        </Button>
      </Empty>
    )
  if (isFiltered(filter))
    return (
      <Empty icon="filter" title="No exchange matches" text="Nothing that is kept in memory fits the filter.">
        <Button onClick={() => onFilter({})}>Show all</Button>
      </Empty>
    )
  if (model.facts.value?.isOn === false)
    return (
      <Empty
        icon="recorder"
        title="The recorder is off"
        text="While it is on, the latest exchanges are kept in memory, with both sides of each message and without secrets."
        command={isOwner.value ? undefined : 'dragoman console'}
      >
        {isOwner.value && (
          <Button kind="primary" icon="recorder" onClick={() => switchRecorder(model, true)}>
            Switch it on
          </Button>
        )}
      </Empty>
    )
  return (
    <Empty
      icon="recorder"
      title="Nothing recorded yet"
      text="Exchanges appear here as clients call the gateway. Make one now:"
      command="dragoman tools"
    >
      <a class="button button-plain" href={hrefTo('explore')}>
        Call a tool in Explore
      </a>
      <a class="button button-plain" href={hrefTo('connect')}>
        Connect a client
      </a>
    </Empty>
  )
}

/** Viewers see which calls were made, and owners what was said. */
export const OwnerOnly = ({ onClose }: { readonly onClose: () => void }) => (
  <div class="rec-exchange">
    <Empty
      icon="eye"
      title="Only the owner sees messages"
      text="Messages may hold private data. To see them, open the console as the owner: run this command on the machine of the gateway."
      command="dragoman console"
    >
      <Button onClick={onClose} keys="Escape">
        Back to the list
      </Button>
    </Empty>
  </div>
)
