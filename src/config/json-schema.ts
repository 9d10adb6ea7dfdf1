import { z } from 'zod'
import { fileSchema } from './schema.ts'

/** The published JSON Schema of the configuration file, made from the one it is checked with. */
export const jsonSchema = (): object => ({
  ...z.toJSONSchema(fileSchema, { io: 'input', target: 'draft-7' }),
  title: 'Dragoman configuration',
})
