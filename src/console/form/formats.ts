interface TextFormat {
  readonly expected: string // an example, for the message and the empty field
  readonly isValid: (text: string) => boolean
  readonly isDay?: true // the browser has a control for it
}

const DATE = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/
const TIME = /^([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?(z|[+-]\d\d:\d\d)$/i
const EMAIL = /^[^\s@"(),:;<>[\\\]]+@[^\s@.]+(\.[^\s@.]+)*$/
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
const IPV4 = /^((25[0-5]|2[0-4]\d|1?\d?\d)(\.(?!$)|$)){4}$/
const HOST = /^(?=.{1,253}$)[a-z\d]([a-z\d-]{0,61}[a-z\d])?(\.[a-z\d]([a-z\d-]{0,61}[a-z\d])?)*$/i

const isDateTime = (text: string): boolean => {
  const [date = '', ...rest] = text.split(/t/i)
  return isRealDate(date) && TIME.test(rest.join('t'))
}

/** The browser accepts the 31st of each month. */
const isRealDate = (date: string): boolean => {
  if (!DATE.test(date)) return false
  const parsed = new Date(`${date}T00:00:00Z`)
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(date)
}

/** The formats that the form knows. Others are not checked. */
const TEXT_FORMATS: Readonly<Record<string, TextFormat>> = {
  date: { expected: '1999-12-31', isValid: isRealDate, isDay: true },
  'date-time': { expected: '2026-01-31T12:00:00Z', isValid: isDateTime },
  time: { expected: '12:00:00Z', isValid: text => TIME.test(text) },
  email: { expected: 'ann@example.com', isValid: text => EMAIL.test(text) },
  uri: {
    expected: 'https://example.com/',
    isValid: text => /^[a-z][\w+.-]*:/i.test(text) && URL.canParse(text),
  },
  uuid: { expected: '123e4567-e89b-42d3-a456-426614174000', isValid: text => UUID.test(text) },
  ipv4: { expected: '192.0.2.1', isValid: text => IPV4.test(text) },
  hostname: { expected: 'example.com', isValid: text => HOST.test(text) },
}

export const textFormat = (name: unknown): TextFormat | undefined =>
  typeof name === 'string' && Object.hasOwn(TEXT_FORMATS, name) ? TEXT_FORMATS[name] : undefined
