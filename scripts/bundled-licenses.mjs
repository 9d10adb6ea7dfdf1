// The licences of the packages whose code is in a bundle.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** As one text. `inputs`: the paths of the bundled modules, from the root of the project. */
export const licensesOf = async inputs => {
  const found = inputs.map(path => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1])
  const packages = [...new Set(found.filter(name => name !== undefined))].sort()
  const texts = packages.map(async name => {
    const folder = join(root, 'node_modules', name)
    const file = (await readdir(folder)).find(each => /^licen[cs]e/i.test(each))
    const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    return `${name} ${version} (${license})\n\n${file ? (await readFile(join(folder, file), 'utf8')).trim() : ''}\n`
  })
  return (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`)
}
