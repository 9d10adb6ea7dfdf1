import * as z from 'zod'

// Building blocks of the schemas, with error messages for the user of the file.

export const textSchema = z.string({ error: 'expected a string' })
export const flagSchema = z.boolean({ error: 'expected true or false' })
export const listOf = <T extends z.ZodType>(item: T) => z.array(item, { error: 'expected an array of strings' })
export const textList = listOf(textSchema)
export const textMap = z.record(z.string(), textSchema, { error: 'expected an object of strings' })

export const oneOfSchema = <const T extends readonly [string, ...string[]]>(values: T) =>
  z.enum(values, { error: `expected one of ${values.map(value => JSON.stringify(value)).join(', ')}` })

const OBJECT = { error: 'expected an object' }

/** An object without unknown keys. */
export const object = <S extends z.ZodRawShape>(shape: S) => z.strictObject(shape, OBJECT)
/** An object that may hold keys of other programs. */
export const looseObject = <S extends z.ZodRawShape>(shape: S) => z.looseObject(shape, OBJECT)
export const mapOf = <V extends z.ZodType>(value: V) => z.record(z.string(), value, OBJECT)

export const wholeNumber = (min: number, max = Number.MAX_SAFE_INTEGER) => {
  const range = max === Number.MAX_SAFE_INTEGER ? `from ${min} up` : `from ${min} to ${max}`
  const error = `expected a whole number ${range}`
  return z.int({ error }).min(min, { error }).max(max, { error })
}
