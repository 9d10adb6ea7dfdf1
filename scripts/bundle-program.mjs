// Bundles src/ into dist/: one file with all code (dist/program/program.js), one that loads it with the code that V8 compiled
// for an earlier start, and beside them the files that Node.js starts with. Decisions 61 and 69 say why.
import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { licensesOf } from './bundled-licenses.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const target = join(root, 'dist')
const program = join(target, 'program')

/** What can be started, each by a file of its own in dist/. All code is bundled once, so that what they share is. */
const ENTRIES = {
  command: { module: 'main.ts', file: 'main.js' },
  exports: { module: 'index.ts', file: 'index.mjs' },
  memoryThread: { module: 'servers/memory/thread-entry.ts', file: 'servers/memory/thread-entry.js' },
  openapiThread: { module: 'servers/openapi/compile/thread-entry.ts', file: 'servers/openapi/compile/thread-entry.js' },
}

/** Installed for the types of the package's exports, which use its own; the code is bundled as that of development dependencies. */
const TYPES_ONLY = 'zod'

/** A large package that a gateway with plain servers does not need: a file of its own, loaded by the first module that uses it. */
const LATE = 'undici'

/** In a function, as Node.js runs CommonJS modules, because it is compiled as a script. */
const WRAPPER = ['(function (exports, require, module, __filename, __dirname) { ', '\n})\n']
// In src/, modules find files by their URL; all of them are as deep as dist/program/ is.
const MODULE_URL = 'const $moduleUrl = require("node:url").pathToFileURL(__filename).href;'

export const bundleProgram = async () => {
  const { build } = await import('esbuild')
  const { dependencies } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  const inputs = []
  const bundle = async options => {
    const { metafile, outputFiles } = await build({
      absWorkingDir: root,
      outdir: program,
      bundle: true,
      mainFields: ['module', 'main'],
      format: 'cjs',
      platform: 'node',
      target: 'node20.19',
      supported: { 'dynamic-import': false }, // in a script, only `require` finds packages
      legalComments: 'none', // the file of licences has them
      metafile: true,
      logLevel: 'warning',
      write: false,
      ...options,
    })
    inputs.push(...Object.keys(metafile.inputs))
    return asciiOnly(outputFiles[0].text)
  }
  const code = await bundle({
    stdin: { contents: loadEntries(), resolveDir: join(root, 'src') },
    external: Object.keys(dependencies).filter(name => name !== TYPES_ONLY),
    plugins: [ownFile(LATE)],
    define: { 'import.meta.url': '$moduleUrl', 'import.meta.resolve': 'undefined' }, // used only by the sources
    banner: { js: MODULE_URL },
  })
  const wrapped = WRAPPER.join(code)
  const hash = createHash('sha256').update(wrapped).digest('hex')
  await write('program/program.js', wrapped)
  await write(
    'program/load-program.js',
    await bundle({ entryPoints: ['src/start/load-program.ts'], define: { BUILD: JSON.stringify(hash) } }),
  )
  await write(`program/${LATE}.js`, await bundle({ entryPoints: [LATE], minifyWhitespace: true }))
  await writeEntries()
  await write('licenses.txt', await licensesOf(inputs))
}

const write = async (name, text) => {
  const path = join(target, name)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text, { mode: text.startsWith('#!') ? 0o755 : 0o644 })
}

/** Lets a package be the file of that name beside the program. */
const ownFile = name => ({
  name: 'own-file',
  setup: ({ onResolve }) =>
    onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path: `./${name}.js`, external: true })),
})

/** The module of each entry is loaded when it is asked for. */
const loadEntries = () => {
  const loaders = Object.entries(ENTRIES).map(([name, { module }]) => `${name}: () => import('./${module}')`)
  return `export const entries = { ${loaders.join(', ')} }`
}

/** CommonJS, which Node.js starts with sooner. Programs that embed the gateway import an ES module, which names its exports. */
const writeEntries = async () => {
  await write('package.json', '{ "type": "commonjs" }\n')
  const { loadExports } = createRequire(import.meta.url)(join(program, 'load-program.js'))
  const names = Object.keys(await loadExports()).sort()
  const texts = {
    command: load => `#!/usr/bin/env node\nrequire('${load}').runCommand()\n`,
    exports: load => `import program from '${load}'\nexport const { ${names} } = await program.loadExports()\n`,
  }
  const threadText = name => load => `require('${load}').runThread('${name}')\n`
  for (const [name, { file }] of Object.entries(ENTRIES)) {
    const path = relative(dirname(file), 'program/load-program.js').replaceAll('\\', '/')
    const textOf = texts[name] ?? threadText(name)
    await write(file, textOf(path.startsWith('.') ? path : `./${path}`))
  }
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
