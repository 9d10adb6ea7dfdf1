import type { Dialect } from '../../../stores/dialect.ts'

/** How an engine lays out the tables: in a database of the tenant, or shared by all tenants. */
export interface SchemaLayout {
  readonly types: Dialect['types']
  /** The definition of the tenant's column, with a comma after it; empty in a database of the tenant. */
  readonly tenant: string
  /** The definitions of the columns before the others of a table with a row id; `serialId` never uses an id again. */
  readonly rowId: string
  readonly serialId: string
  /** The constraint that the row id is the primary key, with a comma before it; empty if the column's definition says so. */
  readonly idConstraint: string
  /** After a table that is read by its primary key only. */
  readonly keyedTable: string
  /** The columns of a key or index, after the tenant's if there is one. */
  key(columns: string): string
  /** The constraint that a column refers to the id of a table. */
  references(column: string, table: string, onDelete?: 'CASCADE' | 'SET NULL'): string
}

/** The tables and indexes of the memory, without what each engine adds for full-text search. */
export const createTables = (layout: SchemaLayout): string => {
  const { types, tenant, rowId, serialId, idConstraint, keyedTable, key, references } = layout
  const { integer: INTEGER, real: REAL, bytes: BYTES, key: KEY } = types
  return `
CREATE TABLE meta (${tenant}key ${KEY} NOT NULL, value TEXT NOT NULL, PRIMARY KEY (${key('key')}))${keyedTable};

CREATE TABLE saga (
  ${rowId}, uuid ${KEY} NOT NULL, group_id ${KEY} NOT NULL, name ${KEY} NOT NULL,
  summary TEXT NOT NULL DEFAULT '', created_at ${INTEGER} NOT NULL, summarised_to ${INTEGER} NOT NULL DEFAULT 0${idConstraint},
  UNIQUE (${key('uuid')}), UNIQUE (${key('group_id, name')})
);

CREATE TABLE episode (
  ${serialId}, uuid ${KEY} NOT NULL, group_id ${KEY} NOT NULL, name TEXT NOT NULL,
  content TEXT NOT NULL, source TEXT NOT NULL, source_description TEXT NOT NULL, actor TEXT,
  created_at ${INTEGER} NOT NULL, valid_at ${INTEGER} NOT NULL, content_hash ${BYTES} NOT NULL,
  saga_id ${INTEGER}, prev_id ${INTEGER}, chain ${KEY}, meta TEXT NOT NULL DEFAULT '{}',
  state ${KEY} NOT NULL DEFAULT 'ready', error TEXT${idConstraint},
  UNIQUE (${key('uuid')}), UNIQUE (${key('group_id, valid_at, content_hash')}),
  ${references('saga_id', 'saga', 'SET NULL')}, ${references('prev_id', 'episode', 'SET NULL')}
);
CREATE INDEX episode_saga ON episode (${key('saga_id')}) WHERE saga_id IS NOT NULL;
CREATE INDEX episode_prev ON episode (${key('prev_id')}) WHERE prev_id IS NOT NULL;
CREATE INDEX episode_state ON episode (${key('state')}) WHERE state <> 'ready';

CREATE TABLE doc (
  ${rowId}, episode_id ${INTEGER} NOT NULL, group_id ${KEY} NOT NULL,
  chain ${KEY}, ord ${INTEGER} NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, index_text TEXT, actor TEXT,
  prev TEXT NOT NULL, next TEXT NOT NULL, dt TEXT NOT NULL${idConstraint}, ${references('episode_id', 'episode', 'CASCADE')}
);
CREATE INDEX doc_chain ON doc (${key('chain, episode_id, ord')}) WHERE chain IS NOT NULL;

CREATE TABLE entity (
  ${rowId}, uuid ${KEY} NOT NULL, group_id ${KEY} NOT NULL, name TEXT NOT NULL,
  labels TEXT NOT NULL DEFAULT '[]', summary TEXT NOT NULL DEFAULT '', attributes TEXT NOT NULL DEFAULT '{}',
  created_at ${INTEGER} NOT NULL${idConstraint}, UNIQUE (${key('uuid')})
);

-- The primary key makes two entities of one name impossible.
CREATE TABLE alias (
  ${tenant}group_id ${KEY} NOT NULL, norm ${KEY} NOT NULL, entity_id ${INTEGER} NOT NULL, name TEXT NOT NULL,
  PRIMARY KEY (${key('group_id, norm')}), ${references('entity_id', 'entity', 'CASCADE')}
)${keyedTable};
CREATE INDEX alias_entity ON alias (${key('entity_id')});

CREATE TABLE name_key (
  ${tenant}group_id ${KEY} NOT NULL, key ${KEY} NOT NULL, norm ${KEY} NOT NULL, entity_id ${INTEGER} NOT NULL,
  PRIMARY KEY (${key('group_id, key, norm')}), ${references('entity_id', 'entity', 'CASCADE')}
)${keyedTable};
CREATE INDEX name_key_entity ON name_key (${key('entity_id')});

CREATE TABLE mention (
  ${tenant}episode_id ${INTEGER} NOT NULL, entity_id ${INTEGER} NOT NULL, PRIMARY KEY (${key('episode_id, entity_id')}),
  ${references('episode_id', 'episode', 'CASCADE')}, ${references('entity_id', 'entity', 'CASCADE')}
)${keyedTable};
CREATE INDEX mention_entity ON mention (${key('entity_id')});

CREATE TABLE fact (
  ${rowId}, uuid ${KEY} NOT NULL, group_id ${KEY} NOT NULL, src ${INTEGER} NOT NULL, dst ${INTEGER} NOT NULL,
  name ${KEY} NOT NULL, fact TEXT NOT NULL, norm_hash ${BYTES} NOT NULL, doc_id ${INTEGER},
  valid_at ${INTEGER}, valid_gran TEXT, invalid_at ${INTEGER}, created_at ${INTEGER} NOT NULL, expired_at ${INTEGER},
  reference_time ${INTEGER}, attributes TEXT NOT NULL DEFAULT '{}', origin TEXT NOT NULL, confidence ${REAL} NOT NULL,
  superseded_by ${INTEGER}${idConstraint}, UNIQUE (${key('uuid')}), ${references('src', 'entity')},
  ${references('dst', 'entity')}, ${references('doc_id', 'doc', 'SET NULL')}, ${references('superseded_by', 'fact', 'SET NULL')}
);
CREATE INDEX fact_src ON fact (${key('src, name')});
CREATE INDEX fact_dst ON fact (${key('dst')});
CREATE INDEX fact_hash ON fact (${key('norm_hash')});
CREATE INDEX fact_valid ON fact (${key('group_id, valid_at')});
CREATE INDEX fact_invalid ON fact (${key('group_id, invalid_at')}) WHERE invalid_at IS NOT NULL;
CREATE INDEX fact_doc ON fact (${key('doc_id')}) WHERE doc_id IS NOT NULL;
CREATE INDEX fact_superseded ON fact (${key('superseded_by')}) WHERE superseded_by IS NOT NULL;

CREATE TABLE fact_episode (
  ${tenant}fact_id ${INTEGER} NOT NULL, episode_id ${INTEGER} NOT NULL, doc_id ${INTEGER}, ord ${INTEGER} NOT NULL,
  PRIMARY KEY (${key('fact_id, episode_id')}), ${references('fact_id', 'fact', 'CASCADE')},
  ${references('episode_id', 'episode', 'CASCADE')}, ${references('doc_id', 'doc', 'SET NULL')}
)${keyedTable};
CREATE INDEX fact_episode_episode ON fact_episode (${key('episode_id')});
CREATE INDEX fact_episode_doc ON fact_episode (${key('doc_id')}) WHERE doc_id IS NOT NULL;

CREATE TABLE community (
  ${rowId}, uuid ${KEY} NOT NULL, group_id ${KEY} NOT NULL, name TEXT NOT NULL,
  summary TEXT NOT NULL, created_at ${INTEGER} NOT NULL${idConstraint}, UNIQUE (${key('uuid')})
);
CREATE INDEX community_group ON community (${key('group_id')});
CREATE TABLE community_member (
  ${tenant}community_id ${INTEGER} NOT NULL, entity_id ${INTEGER} NOT NULL,
  PRIMARY KEY (${key('community_id, entity_id')}),
  ${references('community_id', 'community', 'CASCADE')}, ${references('entity_id', 'entity', 'CASCADE')}
)${keyedTable};
CREATE INDEX community_member_entity ON community_member (${key('entity_id')});

CREATE TABLE vec (
  ${tenant}kind ${KEY} NOT NULL, model ${KEY} NOT NULL, row_id ${INTEGER} NOT NULL, group_id ${KEY} NOT NULL,
  dim INTEGER NOT NULL, scale ${REAL} NOT NULL, q8 ${BYTES} NOT NULL, PRIMARY KEY (${key('kind, row_id, model')})
)${keyedTable};

CREATE TABLE job (
  ${serialId}, group_id ${KEY} NOT NULL, episode_id ${INTEGER}, kind ${KEY} NOT NULL, state ${KEY} NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, next_at ${INTEGER} NOT NULL, lease_owner TEXT, lease_until ${INTEGER},
  error TEXT, payload TEXT NOT NULL DEFAULT '{}', created_at ${INTEGER} NOT NULL${idConstraint},
  ${references('episode_id', 'episode', 'CASCADE')}
);
CREATE INDEX job_order ON job (${key('kind, group_id, id')}) WHERE state <> 'failed';
CREATE INDEX job_episode ON job (${key('episode_id')}) WHERE episode_id IS NOT NULL;

CREATE TABLE audit (
  ${rowId}, at ${INTEGER} NOT NULL, actor TEXT, op TEXT NOT NULL, ids TEXT NOT NULL${idConstraint}
);
`
}
