// Media types as documents and responses name them.

/** The type in lower case, without parameters. */
export const bareMediaType = (text: string): string => (text.split(';')[0] ?? '').trim().toLowerCase()

export const isJsonType = (mediaType: string): boolean =>
  /^(application|text)\/([\w.+-]+\+)?json$/.test(bareMediaType(mediaType))

/** Types whose bodies are text, besides JSON. */
export const isTextType = (mediaType: string): boolean =>
  /^text\/|[/+](xml|yaml|x-yaml|x-ndjson|jsonl|x-jsonlines|graphql|javascript|csv|toml|sql|x-www-form-urlencoded)$/.test(
    bareMediaType(mediaType),
  )

/** Types that stand for the bytes of a file. */
export const isOctetStream = (mediaType: string): boolean => bareMediaType(mediaType) === 'application/octet-stream'
