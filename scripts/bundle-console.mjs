// Bundles src/console/ into dist/console/: hashed names, a file per page, and the page itself; all compressed by Brotli.
import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, constants } from 'node:zlib'
import { licensesOf } from './bundled-licenses.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const source = join(root, 'src', 'console')
const target = join(root, 'dist', 'console')

const ENTRIES = { main: join(source, 'main.tsx'), style: join(source, 'styles', 'index.css') }

const compress = text => promisify(brotliCompress)(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })

export const bundleConsole = async () => {
  const { build } = await import('esbuild')
  const { metafile } = await build({
    entryPoints: { ...ENTRIES, icon: join(source, 'icon.svg') },
    absWorkingDir: root,
    tsconfig: join(source, 'tsconfig.json'),
    outdir: target,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    loader: { '.svg': 'copy' },
    legalComments: 'none', // the file of licences has them
    metafile: true,
    logLevel: 'warning',
  })
  const outputs = Object.entries(metafile.outputs).map(([path, output]) => ({ name: basename(path), ...output }))
  const licenses = await writeHashedLicenses(Object.keys(metafile.inputs))
  const page = join(target, 'index.html')
  await writeFile(page, fill(await readFile(join(source, 'index.html'), 'utf8'), outputs, licenses))
  const names = [...outputs.map(({ name }) => name), licenses, 'index.html']
  await Promise.all(
    names.map(async name => {
      const path = join(target, name)
      await writeFile(`${path}.br`, await compress(await readFile(path)))
      await rm(path)
    }),
  )
}

/** Writes the licences of the packages in the bundle; returns the name of their file. */
const writeHashedLicenses = async inputs => {
  const text = await licensesOf(inputs)
  const name = `licenses-${createHash('sha256').update(text).digest('hex').slice(0, 8)}.txt`
  await writeFile(join(target, name), text)
  return name
}

/** The page with the names of its files, relative to it, so that they are right behind a proxy's prefix, too. */
const fill = (template, outputs, licenses) => {
  const nameOf = start => outputs.find(({ entryPoint, name }) => entryPoint && name.startsWith(`${start}-`))?.name
  const script = outputs.find(({ name }) => name === nameOf('main'))
  const preloads = script.imports
    .filter(({ kind }) => kind === 'import-statement')
    .map(({ path }) => `<link rel="modulepreload" href="console/${basename(path)}">`)
  const values = {
    icon: `console/${nameOf('icon')}`,
    style: `console/${nameOf('style')}`,
    script: `console/${script.name}`,
    licenses: `console/${licenses}`,
    preloads: preloads.join('\n'),
  }
  return template.replace(
    /\{\{(\w+)\}\}\n?/g,
    (whole, name) => values[name] + (whole.endsWith('\n') && values[name] ? '\n' : ''),
  )
}
