import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer, connect as netConnect, type Socket } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import {
  serverUrl,
  temporarySchema,
  temporaryStore,
  temporaryStores,
} from '../../../../test/support/memory/postgres-store.ts'
import {
  DOC_WEIGHTS,
  linesOf,
  temporaryStore as sqliteStore,
  stated,
  tell,
  temporaryFolder,
} from '../../../../test/support/memory/sqlite-store.ts'
import { whyNoPostgres } from '../../../../test/support/postgres.ts'
import { openPostgres } from '../../../stores/postgres.ts'
import { queryTerms } from '../../../text/query.ts'
import { openPostgresStores } from '../open-stores.ts'
import { createRemember } from '../remember.ts'
import type { MemoryStore } from '../store.ts'
import { normaliseName } from '../text/names.ts'
import { createContext, type StoreContext } from './context.ts'
import { erase } from './forget.ts'
import { leaseJob } from './jobs.ts'
import { createMemoryStore } from './memory-store.ts'
import { openMemoryDatabase } from './postgres-database.ts'
import { createPostgresEngine } from './postgres-engine.ts'
import { TENANT_TABLES } from './postgres-schema.ts'

const why = whyNoPostgres()
const contents = async (store: MemoryStore): Promise<string[]> =>
  (await store.episodes({ groups: 'all', limit: 99 })).map(episode => episode.content)

const search = (store: MemoryStore, query: string) =>
  store.searchDocs({ terms: queryTerms(query), groups: 'all', limit: 20, weights: DOC_WEIGHTS })

const connect = async () => {
  const postgres = openPostgres({ url: serverUrl() })
  onTestFinished(() => postgres.close())
  return postgres
}

/** A proxy before the server that can end all connections and refuse the next one. */
const lossyProxy = async (url: string) => {
  const { host, port, searchParams, pathname } = new URL(url)
  const folder = searchParams.get('host')
  let isRefusing = false
  const open = new Set<Socket>()
  const proxy = createServer(client => {
    if (isRefusing) {
      isRefusing = false
      return void client.destroy()
    }
    const server = folder ? netConnect(`${folder}/.s.PGSQL.5432`) : netConnect(Number(port) || 5432, host.split(':')[0])
    open.add(client)
    client.on('error', () => server.destroy()).on('close', () => server.destroy())
    server.on('error', () => client.destroy()).on('close', () => client.destroy())
    client.pipe(server).pipe(client)
  })
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void proxy.close())
  const address = new URL(url)
  address.search = ''
  address.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`
  address.pathname = pathname
  return {
    url: address.href,
    loseConnections: () => {
      for (const client of open) client.destroy()
      open.clear()
      isRefusing = true
    },
  }
}

describe.skipIf(why)(`memory in PostgreSQL${why ? ` (skipped: ${why})` : ''}`, () => {
  describe('tenants', () => {
    const NAMES = ['a', 'A', 'a/b', "a'b", '', '=x', 'ä', 'a\u0000', 'x'.repeat(5_000), 'x'.repeat(5_001), ' a']

    test('each has its own memory, whatever it is called', async () => {
      const all = await temporaryStores()
      for (const name of NAMES) await all.with(name, store => tell(store, `Ann: I am ${name.length}.`, { name: 'n' }))
      for (const name of NAMES) expect(await all.with(name, contents)).toEqual([`Ann: I am ${name.length}.`])
      expect(new Set(await all.tenants())).toEqual(new Set(NAMES))
    })

    test('nothing of one is found, listed, changed or deleted by another', async () => {
      const all = await temporaryStores()
      const { episode, facts } = await all.with('ann', store =>
        tell(store, 'Ann: The secret cello.', { facts: [stated('Ann', 'HIDES', 'Cello')] }),
      )
      await all.with('bob', async store => {
        expect(await search(store, 'secret cello')).toEqual([])
        expect(await store.episode(episode.uuid)).toBeUndefined()
        expect(await store.factsById(facts.map(fact => fact.id))).toEqual([])
        await expect(store.deleteEpisode(episode.uuid)).rejects.toMatchObject({ kind: 'missing' })
        await store.clear('all')
        await tell(store, 'Bob: The same uuid.', { uuid: episode.uuid })
        expect((await store.stats()).groups).toEqual([expect.objectContaining({ episodes: 1 })])
      })
      expect(await all.with('ann', contents)).toEqual(['Ann: The secret cello.'])
    })

    test('a query without a tenant sees nothing, in any table, and can write nothing', async () => {
      const all = await temporaryStores()
      await all.with('ann', store =>
        tell(store, 'Ann: The secret cello.', {
          saga: 's',
          facts: [stated('Ann', 'HIDES', 'Cello')],
          jobs: [{ kind: 'extract' }],
        }),
      )
      const postgres = await connect()
      const begin = `SET LOCAL search_path = ${all.schema}; SET LOCAL ROLE ${all.schema}`
      const counts = await postgres.transaction(
        async sql => {
          const found: number[] = []
          for (const table of TENANT_TABLES)
            found.push((await sql.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`))?.n ?? -1)
          const match =
            "SELECT id FROM doc_match('secret', ARRAY['secret'::tsquery], ARRAY[1.0], ARRAY[1,1,1,1]::float4[], 9)"
          return [...found, (await sql.all(match)).length]
        },
        { begin },
      )
      expect(counts).toEqual([...TENANT_TABLES, 'the index'].map(() => 0))
      const asOwner = await postgres.transaction(sql => sql.get(`SELECT count(*) AS n FROM ${all.schema}.episode`))
      expect(asOwner).toEqual({ n: 1 })
      const forge = (setting: string) =>
        postgres.transaction(sql => sql.run("INSERT INTO audit (tenant, at, op, ids) VALUES ('ann', 0, 'x', '[]')"), {
          begin: `${begin}; SELECT set_config('dragoman.tenant', '${setting}', true)`,
        })
      await expect(forge('')).rejects.toThrow(/row-level security/)
      await expect(forge('bob')).rejects.toThrow(/row-level security/)
    })
  })

  describe('an ordinary user of the database', () => {
    /** Another user who may log in, with the given rights; gone when the test is over. */
    const userWith = async (rights: string): Promise<string> => {
      const [postgres, name] = [await connect(), `user_${temporarySchema()}`]
      await postgres.exec(`CREATE ROLE ${name} LOGIN PASSWORD 'p' ${rights}`)
      const database = await postgres.transaction(sql => sql.get<{ d: string }>('SELECT current_database() AS d'))
      await postgres.exec(`GRANT CREATE ON DATABASE "${database?.d}" TO ${name}`)
      onTestFinished(async () => {
        const cleaner = openPostgres({ url: serverUrl() })
        await cleaner.exec(`DROP OWNED BY ${name} CASCADE; DROP ROLE ${name}`)
        await cleaner.close()
      })
      return serverUrl().replace(/\/\/[^@/]*@/, `//${name}:p@`)
    }

    test('a user who can create roles can use it, and is restricted to tenants as well', async () => {
      const [schema, url] = [temporarySchema(), await userWith('CREATEROLE')]
      for (const start of [1, 2]) {
        const stores = openPostgresStores({ url, schema })
        onTestFinished(() => stores.close())
        await stores.with('ann', store => tell(store, `Ann: The cello, start ${start}.`, { name: `n${start}` }))
        expect(await stores.with('bob', store => search(store, 'cello'))).toEqual([])
        expect(await stores.with('ann', store => search(store, 'cello'))).toHaveLength(start)
        const proof = await stores.with('bob', store => store.forget({ kind: 'group', group: 'main' }))
        expect(proof.files[0]).toMatch(/vacuumed/)
        await stores.close()
      }
    })

    test('a user who cannot create roles gets a message with the statements for an administrator', async () => {
      const [schema, url] = [temporarySchema(), await userWith('')]
      await expect(openMemoryDatabase({ url, schema })).rejects.toThrow(
        `CREATE ROLE ${schema} NOLOGIN; GRANT ${schema} TO`,
      )
    })
  })

  describe('several nodes', () => {
    test('that start at once on an empty database make it once', async () => {
      const [url, schema] = [serverUrl(), temporarySchema()]
      const nodes = await Promise.all(Array.from({ length: 6 }, () => openMemoryDatabase({ url, schema })))
      const versions = await nodes[0]?.postgres.transaction(sql =>
        sql.all(`SELECT version FROM ${schema}.schema_version`),
      )
      await Promise.all(nodes.map(node => node.close()))
      expect(versions).toEqual([{ version: 1 }])
    })

    test('a node whose connection is lost while it starts or lists the tenants connects again', async () => {
      const { url, loseConnections } = await lossyProxy(serverUrl())
      const stores = openPostgresStores({ url, schema: temporarySchema() })
      onTestFinished(() => stores.close())
      loseConnections()
      expect(await stores.tenants()).toEqual([])
      loseConnections()
      expect(await stores.tenants()).toEqual([])
    })

    test('a node older than the database is rejected with the advice to update', async () => {
      const [url, schema] = [serverUrl(), temporarySchema()]
      await (await openMemoryDatabase({ url, schema })).close()
      await (await connect()).exec(`UPDATE ${schema}.schema_version SET version = 99`)
      await expect(openMemoryDatabase({ url, schema })).rejects.toThrow(/newer version \(99/)
    })

    test('two processes add to the same groups: no name twice, no job done twice or left', async () => {
      const all = await temporaryStores()
      const file = fileURLToPath(new URL('../../../../test/support/memory/postgres-node.ts', import.meta.url))
      const run = async (node: string): Promise<number[]> => {
        const args = ['--import', 'tsx', file, serverUrl(), all.schema, node]
        const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 100_000 })
        return JSON.parse(stdout) as number[]
      }
      const done = (await Promise.all([run('one'), run('two')])).flat()
      await all.with('shared', async store => {
        expect((await store.episodes({ groups: 'all', limit: 999 })).length).toBe(120)
        const names = (await store.entities('all', 9_999)).map(({ group, name }) => `${group}/${normaliseName(name)}`)
        expect(names.length - new Set(names).size).toBe(0)
        expect(names).toContain('group-0/zoe alvarez')
        const left = (await store.jobs({ groups: 'all', limit: 999 })).map(({ id }) => id)
        expect(new Set([...done, ...left]).size).toBe(done.length + left.length)
        expect(done.length + left.length).toBe(120)
        expect(left).toEqual([])
        expect((await store.episodes({ groups: 'all', limit: 999, state: 'pending' })).length).toBe(0)
      })
    }, 120_000)

    test('what one acknowledged the other finds at once', async () => {
      const schema = temporarySchema()
      const [one, two] = [await temporaryStores(schema), await temporaryStores(schema)]
      await one.with('t', store => tell(store, 'Ann: A cello from Cremona.'))
      expect((await two.with('t', store => search(store, 'cello'))).map(doc => doc.text)).toEqual([
        'A cello from Cremona.',
      ])
    })
  })

  describe('beside SQLite', () => {
    const TALK = Array.from(
      { length: 40 },
      (_, at) =>
        `${at % 2 ? 'Ann' : 'Bob'}: ${['The cello in Cremona', 'A café near Tōkyō 東京タワー', 'readFileSync failed', 'Nothing much'][at % 4]} on day ${at}.`,
    )

    test('the same talk gives the same passages in the same order with the same scores', async () => {
      const stores = [await temporaryStore(), await sqliteStore()]
      const remember = createRemember({ extracts: false, embeds: false })
      const told = { group: 'main', source: 'message', sourceDescription: '', chain: 'talk' } as const
      for (const store of stores)
        for (const [at, body] of TALK.entries()) await remember(store, { ...told, name: `n${at}`, body, validAt: at })
      for (const query of [
        'cello Cremona',
        'café',
        '東京',
        '東',
        'read file',
        'day 7 Ann',
        'nothing',
        'Bob on day 12',
      ]) {
        const [ours, theirs] = await Promise.all(stores.map(store => search(store, query)))
        expect(ours?.length, query).toBeGreaterThan(0)
        expect(
          ours?.map(hit => hit.id),
          query,
        ).toEqual(theirs?.map(hit => hit.id))
        for (const [at, hit] of (ours ?? []).entries())
          expect(hit.score, query).toBeCloseTo(theirs?.[at]?.score ?? 0, 4)
      }
    })

    test('what one exports the other imports and exports again, line for line', async () => {
      const [ours, theirs] = [await temporaryStore(), await sqliteStore()]
      await tell(theirs, 'Ann: The tower in Pisa leans.\nBob: 東京タワー, says "Zoë".', {
        chain: 'chat',
        saga: 'towers',
        meta: { of: ['anything'] },
        entities: [{ name: 'Ann', aliases: ['Zed', 'annie', 'Ämi'], summary: '"s"\n', attributes: { b: 1, a: 2.5 } }],
        facts: [stated('Ann', 'LIVES_IN', 'Rome', { confidence: 0.3 })],
        jobs: [{ kind: 'extract', payload: { x: 1 } }],
      })
      const members = (await theirs.entities('all', 2)).map(entity => entity.uuid)
      await theirs.replaceCommunities('all', [{ group: 'main', name: 'People', summary: 'Some', members }])
      const lines = await linesOf(theirs)
      await ours.importLines(lines)
      expect(await linesOf(ours)).toEqual(lines)
      const back = await sqliteStore()
      await back.importLines(await linesOf(ours))
      expect(await linesOf(back)).toEqual(lines)
    })
  })

  test('the counts the ranking rests on are those of the rows, whatever came and went', async () => {
    const store = await temporaryStore()
    const told = []
    for (const line of ['Ann: a red cello', 'Bob: a blue cello', 'Ann: a red tuba'])
      told.push(await tell(store, line, { chain: 'c', facts: [stated('Ann', 'OWNS', line.slice(7))] }))
    await store.deleteEpisode(told[1]?.episode.uuid ?? '')
    await tell(store, 'Ann: a green harp', { uuid: told[2]?.episode.uuid ?? '', chain: 'c' })
    const postgres = await connect()
    const kinds = ['doc', 'fact', 'entity']
    const counted = (kind: string) => `SELECT kind, stem, n FROM term WHERE kind = '${kind}' AND stem <> ''
      EXCEPT SELECT '${kind}', word, count(*) FROM ${kind}_fts, unnest(tsv) u (word, p, w) WHERE word NOT LIKE '=%' GROUP BY word`
    const wrong = await postgres.transaction(sql => sql.all(kinds.map(counted).join(' UNION ALL ')), {
      begin: `SET LOCAL search_path = ${store.path}`,
    })
    expect(wrong).toEqual([])
    expect(await search(store, 'tuba')).toEqual([])
    await store.clear('all')
    const rest = await postgres.transaction(sql => sql.all(`SELECT * FROM ${store.path}.term`))
    expect(rest).toEqual([])
  })

  test('what is forgotten is in no row any more, and the proof does not promise more than that', async () => {
    const store = await temporaryStore()
    for (const [group, line] of [
      ['kept', 'Ann: ordinary weather in Lisbon.'],
      ['kept', 'wendelin: I am here myself.'],
      ['secret', 'Wendelin: The quokkafarm of Brunhilde.'],
    ] as const)
      await tell(store, line, { group, chain: 'c', facts: [stated('Wendelin', 'OWNS', `Quokkafarm ${group}`)] })
    const group = await store.forget({ kind: 'group', group: 'secret' }, { actor: 'root' })
    expect(group).toMatchObject({ clean: false, erased: { docs: 1 } })
    expect(group.gone).toBe(group.checked)
    expect(group.files[0]).toMatch(/vacuumed; the server's log/)
    const subject = await store.forget({ kind: 'subject', name: 'WENDELIN', groups: 'all' })
    expect(subject.erased.episodes).toHaveLength(2)
    const postgres = await connect()
    for (const table of TENANT_TABLES) {
      const rows = await postgres.transaction(sql => sql.all(`SELECT r::text AS r FROM ${store.path}.${table} r`))
      expect(JSON.stringify(rows), table).not.toMatch(/quokka|brunhilde|wendelin/i)
    }
    expect((await store.audit(2)).map(row => row.op)).toEqual(['forget subject', 'forget group'])
  })

  test('a forgotten subject is named by nothing that stays, and nothing in particular cannot be forgotten', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: Something else in Lisbon.', {
      saga: 'with Wendelin',
      chain: 'with Wendelin',
      meta: { for: 'Wendelin' },
      entities: [{ name: 'Zoe', summary: 'A friend of Wendelin', attributes: { knows: 'Wendelin' } }],
      jobs: [{ kind: 'extract', payload: { about: 'wendelin' } }],
    })
    await store.addFacts('main', {
      entities: [],
      facts: [stated('Zoe', 'MET', 'Bob', { fact: 'Zoe met Bob at Wendelin’s' })],
    })
    const proof = await store.forget({ kind: 'subject', name: 'Wendelin', groups: 'all' })
    expect(proof.erased).toMatchObject({ episodes: [], facts: [expect.any(String)] })
    expect((await linesOf(store)).join('\n')).not.toMatch(/wendelin/i)
    expect(await contents(store)).toEqual(['Ann: Something else in Lisbon.'])
    await tell(store, 'Ann: hm, well.')
    const [note] = await store.entitiesNamed([normaliseName('Note')], 'all')
    await expect(store.forget({ kind: 'entity', uuid: note?.uuid ?? '' })).rejects.toMatchObject({ kind: 'invalid' })
    await expect(store.forget({ kind: 'entity', uuid: 'missing' })).rejects.toMatchObject({ kind: 'missing' })
  })

  test('a backup is an export that appears whole', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: A cello.')
    const path = join(await temporaryFolder(), 'backup.jsonl')
    const { bytes } = await store.backup(path)
    const text = await readFile(path, 'utf8')
    expect(Buffer.byteLength(text)).toBe(bytes)
    expect(text.trimEnd().split('\n')).toEqual(await linesOf(store))
  })

  test('background work keeps its notes in one step', async () => {
    const store = await temporaryStore()
    const one = () => store.amend('spent', known => ({ n: ((known as { n: number } | undefined)?.n ?? 0) + 1 }))
    await Promise.all(Array.from({ length: 10 }, one))
    expect(await store.amend('spent', known => known)).toEqual({ n: 10 })
    expect(await store.amend('other', known => known)).toBeUndefined()
  })

  test('the index is used for candidates, however row-level security sees it', async () => {
    const store = await temporaryStore()
    await tell(store, 'Ann: A cello.')
    const postgres = await connect()
    const scans = await postgres.transaction(
      async sql => {
        await sql.all(
          "SELECT id FROM doc_match('cello', ARRAY['cello'::tsquery], ARRAY[1.0], ARRAY[1,1,1,1]::float4[], 9)",
        )
        return sql.get("SELECT pg_stat_get_xact_numscans('doc_fts_tsv'::regclass) AS n")
      },
      {
        begin: `SET LOCAL search_path = ${store.path}; SET LOCAL enable_seqscan = off; SET LOCAL ROLE ${store.path}; SELECT set_config('dragoman.tenant', 'test', true)`,
      },
    )
    expect(scans).toEqual({ n: 1 })
  })

  test('names too long for a key are rejected as invalid, and nothing is stored', async () => {
    const store = await temporaryStore()
    const name = Array.from({ length: 3_000 }, (_, at) => String.fromCharCode(0x4e00 + ((at * 7_919) % 20_000))).join(
      '',
    )
    await expect(tell(store, 'Ann: Hi.', { entities: [{ name }] })).rejects.toMatchObject({ kind: 'invalid' })
    expect((await store.stats()).groups).toEqual([])
  })
})

/** Runs `second` while the transaction of `first` is open, until it waits for it; returns the result of `second`. */
const whileOpen = async <Result>(
  prepare: (store: MemoryStore) => Promise<unknown>,
  first: (context: StoreContext) => Promise<unknown>,
  second: (store: MemoryStore) => Promise<Result>,
): Promise<{ readonly store: MemoryStore; readonly result: Result }> => {
  const url = serverUrl()
  const database = await openMemoryDatabase({ url, schema: temporarySchema() })
  const watcher = openPostgres({ url })
  onTestFinished(async () => {
    await watcher.close()
    await database.close()
  })
  const engine = createPostgresEngine(database, 'test')
  const store = createMemoryStore(engine)
  await prepare(store)
  const waiting =
    "SELECT 1 AS there FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
  const started = await database.postgres.transaction(
    async db => {
      const context = createContext(db, engine, Date.now)
      await first(context)
      const running = second(store)
      await vi.waitFor(
        async () => expect(await watcher.transaction(sql => sql.all(waiting), { readOnly: true })).toHaveLength(1),
        { timeout: 10_000 },
      )
      await context.index.flush()
      return { running }
    },
    { begin: database.beginAs('test') },
  )
  return { store, result: await started.running }
}

test.skipIf(why)('a job that another node is leasing is enqueued again', async () => {
  let id: number | undefined
  const { result } = await whileOpen(
    async store => (id = (await store.enqueue('main', { kind: 'communities' })).id),
    async context => expect((await leaseJob(context, 'w', ['communities'], 60_000))?.id).toBe(id),
    store => store.enqueue('main', { kind: 'communities' }),
  )
  expect(result.id).not.toBe(id)
})

test.skipIf(why)('two groups that are forgotten at once leave neither name in the audit log', async () => {
  const { store } = await whileOpen(
    store => store.clear(['one', 'two']),
    context => erase(context, { kind: 'group', group: 'one' }),
    store => store.forget({ kind: 'group', group: 'two' }),
  )
  const cleared = (await store.audit(9)).filter(({ op }) => op === 'clear')
  expect(cleared.map(({ ids }) => ids)).toEqual([[]])
})

test('a database that is not there is named, with what to do', async () => {
  const opening = openMemoryDatabase({ url: 'postgresql://me:secret@127.0.0.1:1/mine' })
  await expect(opening).rejects.toMatchObject({
    kind: 'busy',
    message: expect.stringMatching(/127\.0\.0\.1:1\/mine cannot be reached/),
  })
  await expect(opening).rejects.not.toThrow(/secret/)
})
