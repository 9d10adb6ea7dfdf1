// The memories: `/admin/memory`. Types only; what the other endpoints of this group answer is in `protocol/memory-views.ts`.

/** A memory: what one tenant of a memory server has stored. */
export interface MemoryTenant {
  readonly id: string // `tenant` of the other endpoints
  readonly label: string // "workspace default"
  readonly isEmpty: boolean // nothing has been stored yet
}

/** A memory server of the configuration, with the memories that the caller may see. */
export interface MemoryServerInfo {
  readonly name: string // `server` of the other endpoints
  readonly unavailable?: string | undefined // why it does not run here
  readonly tenantBy: 'workspace' | 'principal'
  readonly group: string // of memories that name none
  readonly storage: 'SQLite' | 'PostgreSQL'
  readonly extractionModel?: string | undefined // undefined: facts are found by rules
  readonly embeddingModel?: string | undefined // undefined: search by words
  readonly workspaces: readonly string[] // that it serves
  readonly tenants: readonly MemoryTenant[]
  readonly tenant?: string | undefined // the one that is meant if none is given
}

/** `GET /admin/memory` */
export interface MemoryServerList {
  readonly servers: readonly MemoryServerInfo[]
  readonly mostImportBytes: number
  readonly formats: readonly string[] // that can be imported
}
