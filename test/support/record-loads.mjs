// Started with `node --import`: appends the URL of every module that the process loads to the file DRAGOMAN_TEST_LOADS.
import { register } from 'node:module'

const hooks = `
import { appendFileSync } from 'node:fs'
export const load = (url, context, next) => {
  appendFileSync(${JSON.stringify(process.env.DRAGOMAN_TEST_LOADS)}, url + '\\n')
  return next(url, context)
}`

register(`data:text/javascript,${encodeURIComponent(hooks)}`)
