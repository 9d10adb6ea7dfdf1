import { readFileSync, writeFileSync } from 'node:fs'

/** The parts of the page in their order; the first is what stands above all headings. */
export const SECTIONS = [
  '',
  'Bars',
  'Where we lose',
  'Other gateways',
  'Growth',
  'Many servers',
  'Durability',
  'Several workers',
  'Sessions',
  'Audit log, traces and tokens',
  'Flight recorder',
  'Tool search',
  'Command line',
  'Idle channels',
  'Parked calls',
  'Memory',
  'Figures',
] as const

export type Sections = Partial<Record<(typeof SECTIONS)[number], string>>

const PAGE = new URL('../../docs/benchmarks.md', import.meta.url)

const INTRODUCTION = `# Benchmarks

<!-- Written by \`npm run bench\`. Do not edit. -->

\`npm run bench\` measures again what a machine with Node.js alone can. Other gateways are measured by
\`npm --prefix bench run peers\`: it looks for nginx and agentgateway on PATH (or \`AGENTGATEWAY\`), for the others in
\`bench/.peers\` (or \`BENCH_PEERS\`), where \`npm --prefix bench run install-peers\` puts them, and skips those it does not find.`

/** The page that has these sections. */
export const render = (sections: Sections): string => {
  const parts = SECTIONS.flatMap(title => {
    const body = sections[title]
    if (body === undefined) return []
    return [title === '' ? `${INTRODUCTION}\n\n${body}` : `## ${title}\n\n${body}`]
  })
  return `${parts.join('\n\n')}\n`
}

/** The sections a page has. */
const read = (page: string): Sections => {
  const [top = '', ...rest] = page.split(/^## /m)
  const sections: Sections = { '': top.replace(INTRODUCTION, '').trim() }
  for (const part of rest) {
    const title = SECTIONS.find(name => name !== '' && part.startsWith(`${name}\n`))
    if (title !== undefined) sections[title] = part.slice(title.length).trim()
  }
  return sections
}

/** Writes what was measured into the page in docs/; what was not keeps the figures of the run before. */
export const publish = (measured: Sections): void =>
  writeFileSync(PAGE, render({ ...read(readFileSync(PAGE, 'utf8')), ...measured }))
