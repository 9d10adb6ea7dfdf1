import { expandTemplate } from '../../../protocol/uri-template.ts'

const EXPRESSION = /\{([+#./;?&]?)([^{}]*)\}/g

/** The variables of a URI template, in the order in which they first occur. */
export const templateVariables = (template: string): readonly string[] => {
  const names = [...template.matchAll(EXPRESSION)].flatMap(([, , list = '']) => list.split(','))
  return [...new Set(names.map(name => name.replace(/[:*].*/, '').trim()).filter(name => name !== ''))]
}

/** Variables after `+` or `#` keep slashes and other reserved characters. */
const reservedVariables = (template: string): ReadonlySet<string> =>
  new Set(
    templateVariables(
      [...template.matchAll(EXPRESSION)]
        .filter(([, operator]) => operator === '+' || operator === '#')
        .map(([text]) => text)
        .join(''),
    ),
  )

/** The URI with these values, percent-encoded; a variable without a value stays as it is written. */
export const fillTemplate = (template: string, values: Readonly<Record<string, string>>): string => {
  const reserved = reservedVariables(template)
  return expandTemplate(template, name => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined
    if (value === undefined || value === '') return undefined
    return reserved.has(name) ? encodeURI(value) : encodeURIComponent(value)
  })
}
