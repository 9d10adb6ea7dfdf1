// The suite imports `globSync` from `fs` for a command that is never called here. Node 20 has no such export, and one
// import that cannot be linked stops the whole program, so `fs` is completed for the suite's own file.
import * as fs from 'node:fs'
import { register } from 'node:module'

const completed = `data:text/javascript,export * from 'node:fs'; export const globSync = undefined`
const hook = `export const resolve = (specifier, context, next) =>
  specifier === 'fs' && context.parentURL.includes('/conformance/dist/')
    ? { url: ${JSON.stringify(completed)}, shortCircuit: true }
    : next(specifier, context)`

if (!('globSync' in fs)) register(`data:text/javascript,${encodeURIComponent(hook)}`)
