/** A form of a page, with what stands in its fields. */
export interface Form {
  readonly action: string
  readonly method: 'GET' | 'POST'
  readonly fields: Readonly<Record<string, string>>
  readonly buttons: readonly { readonly text: string; readonly field: Readonly<Record<string, string>> }[]
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

const decode = (text: string): string =>
  text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (whole, hex, decimal, name) => {
    if (hex) return String.fromCodePoint(Number.parseInt(hex, 16))
    return decimal ? String.fromCodePoint(Number(decimal)) : (ENTITIES[name] ?? whole)
  })

const attributesOf = (tag: string): Map<string, string> =>
  new Map(
    [...tag.matchAll(/([\w-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?/g)]
      .slice(1) // the name of the element
      .map(([, name = '', double, single, bare]) => [name.toLowerCase(), decode(double ?? single ?? bare ?? '')]),
  )

/** The text of a page without its markup. */
export const readText = (html: string): string =>
  decode(html.replace(/<(style|script|title)\b[\s\S]*?<\/\1>/gi, '').replace(/<[^>]*>/g, ' '))
    .replace(/\s+/g, ' ')
    .trim()

/** The forms of a page, in their order. */
export const readForms = (html: string): Form[] =>
  [...html.matchAll(/<form\b([^>]*)>([\s\S]*?)<\/form>/gi)].map(([, head = '', inner = '']) => {
    const attributes = attributesOf(`form ${head}`)
    const fields: Record<string, string> = {}
    const buttons: Form['buttons'][number][] = []
    for (const [tag] of inner.matchAll(/<input\b[^>]*>/gi)) {
      const input = attributesOf(tag.slice(1))
      const [name, type, value] = [input.get('name'), input.get('type') ?? 'text', input.get('value') ?? '']
      if (type === 'submit') buttons.push({ text: value, field: name ? { [name]: value } : {} })
      else if (name && (!['checkbox', 'radio'].includes(type) || input.has('checked')))
        fields[name] = value || (type === 'checkbox' ? 'on' : '')
    }
    for (const [, head = '', text = ''] of inner.matchAll(/<button\b([^>]*)>([\s\S]*?)<\/button>/gi)) {
      const button = attributesOf(`button ${head}`)
      const name = button.get('name')
      if (button.get('type') !== 'button')
        buttons.push({ text: readText(text), field: name ? { [name]: button.get('value') ?? '' } : {} })
    }
    return {
      action: attributes.get('action') ?? '',
      method: attributes.get('method')?.toUpperCase() === 'POST' ? 'POST' : 'GET',
      fields,
      buttons,
    }
  })
