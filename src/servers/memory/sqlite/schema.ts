/** Marks a file as ours ("drgm"), so that somebody else's database is never written to. */
export const APPLICATION_ID = 0x6472676d

const TABLES = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE saga (
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, group_id TEXT NOT NULL, name TEXT NOT NULL,
  summary TEXT NOT NULL DEFAULT '', created_at INTEGER NOT NULL, summarised_to INTEGER NOT NULL DEFAULT 0,
  UNIQUE (group_id, name)
);

CREATE TABLE episode (
  id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE, group_id TEXT NOT NULL, name TEXT NOT NULL,
  content TEXT NOT NULL, source TEXT NOT NULL, source_description TEXT NOT NULL, actor TEXT,
  created_at INTEGER NOT NULL, valid_at INTEGER NOT NULL, content_hash BLOB NOT NULL,
  saga_id INTEGER REFERENCES saga ON DELETE SET NULL, prev_id INTEGER REFERENCES episode ON DELETE SET NULL,
  chain TEXT, meta TEXT NOT NULL DEFAULT '{}', state TEXT NOT NULL DEFAULT 'ready', error TEXT,
  UNIQUE (group_id, valid_at, content_hash)
);
CREATE INDEX episode_saga ON episode (saga_id) WHERE saga_id IS NOT NULL;
CREATE INDEX episode_prev ON episode (prev_id) WHERE prev_id IS NOT NULL;
CREATE INDEX episode_state ON episode (state) WHERE state <> 'ready';

CREATE TABLE doc (
  id INTEGER PRIMARY KEY, episode_id INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE, group_id TEXT NOT NULL,
  chain TEXT, ord INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, index_text TEXT, actor TEXT,
  prev TEXT NOT NULL, next TEXT NOT NULL, dt TEXT NOT NULL
);
CREATE UNIQUE INDEX doc_episode ON doc (episode_id, ord);
CREATE INDEX doc_chain ON doc (chain, episode_id, ord) WHERE chain IS NOT NULL;

CREATE TABLE entity (
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, group_id TEXT NOT NULL, name TEXT NOT NULL,
  labels TEXT NOT NULL DEFAULT '[]', summary TEXT NOT NULL DEFAULT '', attributes TEXT NOT NULL DEFAULT '{}',
  created_at INTEGER NOT NULL
);
CREATE INDEX entity_group ON entity (group_id);

-- The primary key is what makes two entities of one name impossible, whoever writes.
CREATE TABLE alias (
  group_id TEXT NOT NULL, norm TEXT NOT NULL, entity_id INTEGER NOT NULL REFERENCES entity ON DELETE CASCADE,
  name TEXT NOT NULL, PRIMARY KEY (group_id, norm)
) WITHOUT ROWID;
CREATE INDEX alias_entity ON alias (entity_id);

CREATE TABLE name_key (
  group_id TEXT NOT NULL, key TEXT NOT NULL, norm TEXT NOT NULL,
  entity_id INTEGER NOT NULL REFERENCES entity ON DELETE CASCADE, PRIMARY KEY (group_id, key, norm)
) WITHOUT ROWID;
CREATE INDEX name_key_entity ON name_key (entity_id);

CREATE TABLE mention (
  episode_id INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
  entity_id INTEGER NOT NULL REFERENCES entity ON DELETE CASCADE, PRIMARY KEY (episode_id, entity_id)
) WITHOUT ROWID;
CREATE INDEX mention_entity ON mention (entity_id);

CREATE TABLE fact (
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, group_id TEXT NOT NULL,
  src INTEGER NOT NULL REFERENCES entity, dst INTEGER NOT NULL REFERENCES entity,
  name TEXT NOT NULL, fact TEXT NOT NULL, norm_hash BLOB NOT NULL,
  doc_id INTEGER REFERENCES doc ON DELETE SET NULL,
  valid_at INTEGER, valid_gran TEXT, invalid_at INTEGER, created_at INTEGER NOT NULL, expired_at INTEGER,
  reference_time INTEGER, attributes TEXT NOT NULL DEFAULT '{}', origin TEXT NOT NULL, confidence REAL NOT NULL,
  superseded_by INTEGER REFERENCES fact ON DELETE SET NULL
);
CREATE INDEX fact_src ON fact (src, name);
CREATE INDEX fact_dst ON fact (dst);
CREATE INDEX fact_hash ON fact (norm_hash);
CREATE INDEX fact_valid ON fact (group_id, valid_at);
CREATE INDEX fact_invalid ON fact (group_id, invalid_at) WHERE invalid_at IS NOT NULL;
CREATE INDEX fact_doc ON fact (doc_id) WHERE doc_id IS NOT NULL;
CREATE INDEX fact_superseded ON fact (superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE fact_episode (
  fact_id INTEGER NOT NULL REFERENCES fact ON DELETE CASCADE,
  episode_id INTEGER NOT NULL REFERENCES episode ON DELETE CASCADE,
  doc_id INTEGER REFERENCES doc ON DELETE SET NULL, ord INTEGER NOT NULL, PRIMARY KEY (fact_id, episode_id)
) WITHOUT ROWID;
CREATE INDEX fact_episode_episode ON fact_episode (episode_id);
CREATE INDEX fact_episode_doc ON fact_episode (doc_id) WHERE doc_id IS NOT NULL;

CREATE TABLE community (
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, group_id TEXT NOT NULL, name TEXT NOT NULL,
  summary TEXT NOT NULL, created_at INTEGER NOT NULL
);
CREATE INDEX community_group ON community (group_id);
CREATE TABLE community_member (
  community_id INTEGER NOT NULL REFERENCES community ON DELETE CASCADE,
  entity_id INTEGER NOT NULL REFERENCES entity ON DELETE CASCADE, PRIMARY KEY (community_id, entity_id)
) WITHOUT ROWID;
CREATE INDEX community_member_entity ON community_member (entity_id);

CREATE TABLE vec (
  kind TEXT NOT NULL, model TEXT NOT NULL, row_id INTEGER NOT NULL, group_id TEXT NOT NULL,
  dim INTEGER NOT NULL, scale REAL NOT NULL, q8 BLOB NOT NULL, PRIMARY KEY (kind, row_id, model)
) WITHOUT ROWID;

CREATE TABLE job (
  id INTEGER PRIMARY KEY AUTOINCREMENT, group_id TEXT NOT NULL,
  episode_id INTEGER REFERENCES episode ON DELETE CASCADE, kind TEXT NOT NULL, state TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER NOT NULL, lease_owner TEXT, lease_until INTEGER,
  error TEXT, payload TEXT NOT NULL DEFAULT '{}', created_at INTEGER NOT NULL
);
CREATE INDEX job_order ON job (kind, group_id, id) WHERE state <> 'failed';
CREATE INDEX job_episode ON job (episode_id) WHERE episode_id IS NOT NULL;

CREATE TABLE audit (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, actor TEXT, op TEXT NOT NULL, ids TEXT NOT NULL);
`

// The index reads its own form of a passage where there is one, so its content is a view.
const INDEXES = `
CREATE VIEW doc_index AS
  SELECT id, coalesce(index_text, text) AS text, coalesce(actor, '') AS actor, prev, next, dt FROM doc;
CREATE VIRTUAL TABLE doc_fts USING fts5(
  text, actor, prev, next, dt,
  content = 'doc_index', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE fact_fts USING fts5(fact, ents, dt, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE entity_fts USING fts5(
  name, aliases, summary, tokenize = 'porter unicode61 remove_diacritics 2'
);
`

/** Each entry takes a file of the version before it to the next; a new file runs them all. */
export const MIGRATIONS: readonly string[] = [TABLES + INDEXES]
