/** Markup. Only `html` makes it, so that every text in it has been escaped. */
class Html {
  readonly #markup: string

  constructor(markup: string) {
    this.#markup = markup
  }

  toString(): string {
    return this.#markup
  }
}

export type HtmlPart = string | Html | readonly Html[] | undefined

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escapeText = (text: string): string => text.replace(/[&<>"']/g, char => ENTITIES[char] ?? char)

const render = (part: HtmlPart): string => {
  if (part === undefined) return ''
  if (typeof part === 'string') return escapeText(part)
  return part instanceof Html ? String(part) : part.join('\n')
}

/** A template of markup: texts are escaped, markup is inserted as it is. Attribute values must be in double quotes. */
export const html = (markup: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html =>
  new Html(markup.reduce((before, after, at) => `${before}${render(parts[at - 1])}${after}`))
