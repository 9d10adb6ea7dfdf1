/** What a text says about a time. */
export interface DateMention {
  readonly text: string
  readonly start: number
  readonly end: number
}

export interface Doc {
  readonly id: number
  readonly ord: number
  readonly episode: string
}

export interface Fact {
  readonly docId: number | undefined
}

/** A tenant's memory, as far as this measures it. */
export interface Store {
  docsOfEpisodes(episodes: readonly string[]): Promise<readonly Doc[]>
  close(): Promise<void>
}

export interface Told {
  readonly group: string
  readonly name: string
  readonly body: string
  readonly source: 'text' | 'message'
  readonly sourceDescription: string
  readonly validAt: number
  readonly chain?: string
}

interface Search {
  readonly store: Store
  readonly groups: readonly string[]
  readonly question: unknown
  readonly weights: unknown
}

/** Statements of a database without the schema of a memory. */
export interface Sql {
  exec(sql: string): Promise<void>
  all<Row>(sql: string, ...values: readonly (string | number)[]): Promise<Row[]>
  run(sql: string, ...values: readonly (string | number)[]): Promise<number>
  insert(sql: string, ...values: readonly (string | number)[]): Promise<number | undefined>
}

export interface Database extends Sql {
  transaction<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

/** The parts of the built program that a memory is made of, put together as its server does. */
export interface Memory {
  datesIn(text: string, reference: Date): readonly DateMention[]
  open(path: string): Promise<Store>
  remember(store: Store, told: Told): Promise<{ readonly episode: { readonly uuid: string } }>
  passages(store: Store, group: string, query: string, now: number): Promise<readonly Doc[]>
  facts(store: Store, group: string, query: string, now: number, limit: number): Promise<readonly Fact[]>
  match(query: string): string
  openDatabase(path: string): Promise<Database>
}

const load = async <Module>(path: string): Promise<Module> =>
  (await import(new URL(`../../dist/${path}`, import.meta.url).href)) as Module

/** Loads the parts from the build. */
export const loadMemory = async (): Promise<Memory> => {
  const { datesIn } = await load<Pick<Memory, 'datesIn'>>('servers/memory/text/dates.js')
  const { ftsQuery, queryTerms } = await load<{
    ftsQuery(terms: unknown): string
    queryTerms(query: string): unknown
  }>('text/query.js')
  const { readQuestion } = await load<{ readQuestion(query: string, now: number): unknown }>(
    'servers/memory/search/question.js',
  )
  const { WEIGHTS: weights } = await load<{ WEIGHTS: unknown }>('servers/memory/search/weights.js')
  const { searchPassages } = await load<{ searchPassages(search: Search): Promise<readonly Doc[]> }>(
    'servers/memory/search/passages.js',
  )
  const { searchFacts } = await load<{ searchFacts(search: Search & { limit: number }): Promise<readonly Fact[]> }>(
    'servers/memory/search/facts.js',
  )
  const { createRemember } = await load<{
    createRemember(options: { extracts: boolean; embeds: boolean }): Memory['remember']
  }>('servers/memory/remember.js')
  const { openSqliteStore } = await load<{ openSqliteStore(options: { path: string }): Promise<Store> }>(
    'servers/memory/open-stores.js',
  )
  const { openSqlite } = await load<{ openSqlite(path: string): Promise<Database> }>('stores/sqlite.js')
  const searchFor = (store: Store, group: string, query: string, now: number): Search => ({
    store,
    groups: [group],
    question: readQuestion(query, now),
    weights,
  })
  return {
    datesIn,
    open: path => openSqliteStore({ path }),
    remember: createRemember({ extracts: false, embeds: false }),
    passages: (...asked) => searchPassages(searchFor(...asked)),
    facts: (store, group, query, now, limit) => searchFacts({ ...searchFor(store, group, query, now), limit }),
    match: query => ftsQuery(queryTerms(query)),
    openDatabase: openSqlite,
  }
}
