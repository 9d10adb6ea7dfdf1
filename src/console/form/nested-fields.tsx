import { useContext } from 'preact/hooks'
import { isObject } from '../mcp/messages.ts'
import { Button, IconButton } from '../parts/button.tsx'
import { Select } from '../parts/select.tsx'
import { branchAt } from './field-kind.ts'
import { FormContext, type FormContextValue } from './form-context.ts'
import { isMembers, moveItem, pathKey, renameMember, type ValuePath } from './form-value.ts'
import { initialValue } from './initial-value.ts'
import type { SimpleFieldProps } from './simple-fields.tsx'
import { typeText } from './type-text.ts'
import { itemSchema, memberSchemas, requiredNames } from './validate.ts'

const MOST_ITEMS = 200

/** A group of fields with a name, a description and a problem of its own. */
const Group = ({
  props,
  children,
}: {
  readonly props: SimpleFieldProps
  readonly children: preact.ComponentChildren
}) => {
  const { path, shape, label, isRequired = false, isBare = false, value } = props
  const form = useContext(FormContext)
  const problem = form?.problems.get(pathKey(path))
  const { description } = shape.schema
  const isRoot = path.length === 0
  return (
    <fieldset class={isRoot ? 'form-root' : 'form-group'} data-path={pathKey(path)}>
      <legend class={isRoot || isBare ? 'visually-hidden' : undefined}>
        {label}
        {isRequired && !isRoot && (
          <span class="field-required" aria-hidden="true">
            {' '}
            *
          </span>
        )}
        <span class="form-type">{typeText(shape)}</span>
      </legend>
      {!isRoot && !isBare && typeof description === 'string' && <p class="field-hint">{description}</p>}
      {problem !== undefined && <p class="field-error">{problem}</p>}
      {children}
      {!isRoot && (!isRequired || shape.isNullable) && value !== undefined && (
        <div class="form-actions">
          {shape.isNullable && value !== null && (
            <Button kind="quiet" onClick={() => form?.set(path, null)}>
              Set to null
            </Button>
          )}
          {!isRequired && typeof path.at(-1) !== 'number' && (
            <Button kind="quiet" icon="minus" onClick={() => form?.set(path, undefined)}>
              Do not send {label}
            </Button>
          )}
        </div>
      )}
    </fieldset>
  )
}

const AddButton = ({ props, form }: { readonly props: SimpleFieldProps; readonly form: FormContextValue }) => (
  <Button
    icon="plus"
    onClick={() =>
      form.set(props.path, initialValue(props.shape.schema, form.root) ?? (props.shape.kind === 'list' ? [] : {}))
    }
  >
    Add {props.label}
  </Button>
)

export const ObjectField = (props: SimpleFieldProps) => {
  const { path, shape, value } = props
  const form = useContext(FormContext)
  if (!form) return null
  if (!isMembers(value) && path.length > 0)
    return (
      <Group props={props}>
        {value === null && <code>null</code>} <AddButton props={props} form={form} />
      </Group>
    )
  const members = isMembers(value) ? value : {}
  const properties = isObject(shape.schema.properties) ? shape.schema.properties : {}
  const required = requiredNames(shape.schema, members)
  const others = Object.keys(members).filter(name => !Object.hasOwn(properties, name))
  const { additionalProperties, patternProperties } = shape.schema
  const isOpen =
    additionalProperties === true ||
    isObject(additionalProperties) ||
    isObject(patternProperties) ||
    (additionalProperties !== false && Object.keys(properties).length === 0 && path.length > 0)
  return (
    <Group props={props}>
      {Object.entries(properties).map(([name, property]) => (
        <form.Field
          key={name}
          path={[...path, name]}
          schema={property}
          label={name}
          isRequired={required.includes(name)}
          value={Object.hasOwn(members, name) ? members[name] : undefined}
        />
      ))}
      {others.map(name => (
        <OtherMember key={name} name={name} props={props} members={members} />
      ))}
      {isOpen && (
        <div class="form-actions">
          <Button
            icon="plus"
            onClick={() =>
              form.set([...path, freeName(members)], initialValue(otherSchema(props, ''), form.root) ?? '')
            }
          >
            Add member
          </Button>
        </div>
      )}
    </Group>
  )
}

/** The schema of a member that the schema does not name. */
const otherSchema = ({ shape }: SimpleFieldProps, name: string): unknown => {
  const [own] = memberSchemas(shape.schema, {}, name)
  const { additionalProperties, patternProperties } = shape.schema
  const [first] = isObject(patternProperties) ? Object.values(patternProperties) : []
  return own ?? (isObject(additionalProperties) ? additionalProperties : (first ?? true))
}

const freeName = (members: Readonly<Record<string, unknown>>): string => {
  for (let at = 1; ; at++) {
    const name = at === 1 ? 'name' : `name${at}`
    if (!Object.hasOwn(members, name)) return name
  }
}

interface OtherMemberProps {
  readonly name: string
  readonly props: SimpleFieldProps
  readonly members: Readonly<Record<string, unknown>>
}

const OtherMember = ({ name, props, members }: OtherMemberProps) => {
  const form = useContext(FormContext)
  if (!form) return null
  const rename = (next: string): void => {
    if (next !== name && !Object.hasOwn(members, next)) form.set(props.path, renameMember(members, name, next))
  }
  return (
    <div class="form-item">
      <input
        class="form-name mono"
        aria-label={`Name of member ${name}`}
        value={name}
        onChange={({ currentTarget }) => rename(currentTarget.value)}
      />
      <form.Field
        path={[...props.path, name]}
        schema={otherSchema(props, name)}
        label={name}
        value={members[name]}
        isRequired
        isBare
      />
      <IconButton icon="trash" label={`Remove ${name}`} onClick={() => form.set([...props.path, name], undefined)} />
    </div>
  )
}

export const ListField = (props: SimpleFieldProps) => {
  const { path, shape, value, label } = props
  const form = useContext(FormContext)
  if (!form) return null
  if (!Array.isArray(value))
    return (
      <Group props={props}>
        {value === null && <code>null</code>} <AddButton props={props} form={form} />
      </Group>
    )
  const items: readonly unknown[] = value
  const most = typeof shape.schema.maxItems === 'number' ? shape.schema.maxItems : Number.POSITIVE_INFINITY
  const replace = (next: readonly unknown[]): void => form.set(path, next)
  const add = (): void => replace([...items, initialValue(itemSchema(shape.schema, items.length), form.root)])
  return (
    <Group props={props}>
      {items.slice(0, MOST_ITEMS).map((item, at) => (
        <div key={at} class="form-item">
          <span class="form-index">{at + 1}</span>
          <form.Field
            path={[...path, at]}
            schema={itemSchema(shape.schema, at)}
            label={`${label} ${at + 1}`}
            value={item}
            isRequired
            isBare
          />
          <ItemButtons label={`${label} ${at + 1}`} at={at} items={items} path={path} replace={replace} />
        </div>
      ))}
      {items.length > MOST_ITEMS && (
        <p class="field-hint">The other {items.length - MOST_ITEMS} items are in the JSON.</p>
      )}
      <div class="form-actions">
        <Button icon="plus" disabled={items.length >= most} onClick={add}>
          Add item
        </Button>
      </div>
    </Group>
  )
}

interface ItemButtonsProps {
  readonly label: string
  readonly at: number
  readonly items: readonly unknown[]
  readonly path: ValuePath
  readonly replace: (items: readonly unknown[]) => void
}

const ItemButtons = ({ label, at, items, replace }: ItemButtonsProps) => (
  <span class="form-item-buttons">
    <IconButton
      icon="arrow-up"
      label={`Move ${label} up`}
      disabled={at === 0}
      onClick={() => replace(moveItem(items, at, at - 1))}
    />
    <IconButton
      icon="arrow-down"
      label={`Move ${label} down`}
      disabled={at === items.length - 1}
      onClick={() => replace(moveItem(items, at, at + 1))}
    />
    <IconButton icon="trash" label={`Remove ${label}`} onClick={() => replace(items.toSpliced(at, 1))} />
  </span>
)

export const ChoiceField = (props: SimpleFieldProps) => {
  const { path, shape, value, label, isRequired = false, isBare = false } = props
  const form = useContext(FormContext)
  const branches = shape.branches ?? []
  if (!form) return null
  const isSet = value !== undefined && value !== null
  const at = branchAt(branches, value, path, form.chosen, form.root)
  const choose = (next: string): void => {
    if (next === '') form.set(path, next === '' ? undefined : null)
    else if (next === 'null') form.set(path, null)
    else form.choose(path, Number(next), initialValue(branches[Number(next)]?.schema, form.root))
  }
  const isOff = !isSet && (value === null || !(isRequired || form.chosen.has(pathKey(path))))
  return (
    <div class={isBare ? 'form-choice' : 'form-choice form-group'}>
      <div class="field-head">
        <span class={isBare ? 'visually-hidden' : 'form-label'}>
          {label}
          {isRequired && (
            <span class="field-required" aria-hidden="true">
              {' '}
              *
            </span>
          )}
        </span>
        <Select
          label={`Kind of ${label}`}
          value={isOff ? (value === null ? 'null' : '') : String(at)}
          options={[
            ...(isRequired ? [] : [{ value: '', label: 'not sent' }]),
            ...branches.map((branch, index) => ({ value: String(index), label: branch.label })),
            ...(shape.isNullable ? [{ value: 'null', label: 'null' }] : []),
          ]}
          onChange={choose}
        />
      </div>
      {!isBare && typeof shape.schema.description === 'string' && <p class="field-hint">{shape.schema.description}</p>}
      {!isOff && (
        <form.Field
          path={path}
          schema={branches[at]?.schema}
          label={label}
          value={value}
          isRequired
          isBare={path.length > 0}
        />
      )}
    </div>
  )
}
