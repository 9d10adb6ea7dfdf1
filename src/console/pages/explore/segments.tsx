export interface SegmentsProps<Id extends string> {
  readonly label: string
  readonly value: Id
  readonly options: readonly { readonly id: Id; readonly label: string; readonly count?: number | undefined }[]
  readonly onChange: (id: Id) => void
}

/** A choice between few views of the same thing. */
export const Segments = <Id extends string>({ label, value, options, onChange }: SegmentsProps<Id>) => (
  <div class="segments" role="group" aria-label={label}>
    {options.map(option => (
      <button key={option.id} type="button" aria-pressed={option.id === value} onClick={() => onChange(option.id)}>
        {option.label}
        {option.count !== undefined && <span class="tab-count">{option.count}</span>}
      </button>
    ))}
  </div>
)
