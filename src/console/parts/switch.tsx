export interface SwitchProps {
  readonly label: string
  readonly isOn: boolean
  readonly onChange: (isOn: boolean) => void
  readonly disabled?: boolean | undefined
  readonly title?: string | undefined
}

/** Switches something on and off, at once. For choices that are sent with a form, use a checkbox. */
export const Switch = ({ label, isOn, onChange, disabled, title }: SwitchProps) => (
  <button
    type="button"
    role="switch"
    class="switch"
    aria-checked={isOn}
    disabled={disabled}
    title={title}
    onClick={() => onChange(!isOn)}
  >
    <span class="switch-track" />
    <span>{label}</span>
  </button>
)
