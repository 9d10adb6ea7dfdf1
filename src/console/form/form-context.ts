import { type ComponentType, createContext } from 'preact'
import type { ValuePath } from './form-value.ts'
import type { SchemaRoot } from './resolve-schema.ts'
import type { ChosenBranches } from './validate.ts'

/** One place of a form. */
export interface FormFieldProps {
  readonly path: ValuePath
  readonly schema: unknown
  readonly label: string
  readonly isRequired?: boolean
  readonly value: unknown
  readonly isBare?: boolean // its label is elsewhere, and read only by assistive software
}

/** What all fields of a form share. */
export interface FormContextValue {
  readonly root: SchemaRoot
  readonly chosen: ChosenBranches
  readonly problems: ReadonlyMap<string, string>
  readonly set: (path: ValuePath, value: unknown) => void
  readonly choose: (path: ValuePath, branch: number, value: unknown) => void
  /** Renders any place: fields contain fields. */
  readonly Field: ComponentType<FormFieldProps>
}

export const FormContext = createContext<FormContextValue | undefined>(undefined)
