// Bundles src/ into dist/: the command, the package's exports and the entries of threads, with the code they share in
// dist/chunks/. Node.js needs longer to find and link hundreds of small modules than to run them (decision 61).
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { licensesOf } from './bundled-licenses.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src')
const target = join(root, 'dist')

const ENTRIES = ['main.ts', 'index.ts', 'servers/memory/thread-entry.ts', 'servers/openapi/compile/thread-entry.ts']

/** Installed for the types of the package's exports, which use its own; the code is bundled as that of development dependencies. */
const TYPES_ONLY = 'zod'

/** Bundled CommonJS modules require those of Node.js. */
const REQUIRE =
  "import { createRequire as $createRequire } from 'node:module'; const require = $createRequire(import.meta.url);"

export const bundleProgram = async () => {
  const { build } = await import('esbuild')
  const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const { metafile, outputFiles } = await build({
    entryPoints: ENTRIES.map(name => join(source, name)),
    absWorkingDir: root,
    outbase: source,
    outdir: target,
    bundle: true,
    splitting: true,
    external: Object.keys(dependencies).filter(name => name !== TYPES_ONLY),
    mainFields: ['module', 'main'],
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    banner: { js: REQUIRE },
    chunkNames: 'chunks/[name]-[hash]',
    legalComments: 'none', // the file of licences has them
    metafile: true,
    logLevel: 'warning',
    write: false,
  })
  for (const { path, text } of outputFiles) {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, asciiOnly(text), { mode: text.startsWith('#!') ? 0o755 : 0o644 })
  }
  await writeFile(join(target, 'licenses.txt'), await licensesOf(Object.keys(metafile.inputs)))
  await checkPlaces(Object.keys(metafile.outputs))
  await checkPackages(Object.keys(metafile.outputs))
  checkStart(metafile.outputs)
}

/**
 * Escapes what is not ASCII: V8 keeps a text with a single other character in two bytes per character. The bundler leaves
 * template literals and regular expressions as they are; in both the escape means the same, except after a backslash and
 * where the text is taken as it is written.
 */
const asciiOnly = text => {
  if (/\\[^\0-\x7f]/.test(text)) throw new Error('a character that is not ASCII follows a backslash: write it without')
  if (/\.raw\s*`[^`]*[^\0-\x7f]/.test(text))
    throw new Error('String.raw has a character that is not ASCII: write it in another literal')
  return text.replace(/[^\0-\x7f]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Modules find files as from src/<folder>/: code in another depth than that of dist/chunks/ would find none. */
const checkPlaces = async outputs => {
  for (const path of outputs.filter(each => dirname(each) !== 'dist/chunks'))
    if (/new URL\(.*import\.meta\.url/.test(await readFile(join(root, path), 'utf8')))
      throw new Error(`${path} uses import.meta.url, and is not in dist/chunks/`)
}

/** `await import('package')` of a bundled CommonJS package has no names, only a default: the program would fail where it uses one. */
const checkPackages = async outputs => {
  for (const path of outputs) {
    const [line] = /^export default require_\w+\(\);$/m.exec(await readFile(join(root, path), 'utf8')) ?? []
    if (line) throw new Error(`${path} is a package that is imported when it is needed (${line}): import it statically`)
  }
}

/** Large packages that a gateway with plain servers does not need: modules that use them are imported when they are needed. */
const LATE = ['node_modules/undici/']

const checkStart = outputs => {
  const entry = Object.keys(outputs).find(path => outputs[path].entryPoint === 'src/app/gateway.ts')
  const loaded = new Set([entry])
  for (const path of loaded)
    for (const { path: next, kind } of outputs[path]?.imports ?? []) if (kind === 'import-statement') loaded.add(next)
  const inputs = [...loaded].flatMap(path => Object.keys(outputs[path]?.inputs ?? {}))
  const early = inputs.find(input => LATE.some(late => input.startsWith(late)))
  if (early)
    throw new Error(`${early} would be loaded with every start: import the module that uses it when it is needed`)
}
