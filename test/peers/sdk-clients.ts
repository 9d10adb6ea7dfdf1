import type { ClientKind, ClientOptions, TestClient } from '../support/client.ts'
import { connectV1 } from '../support/client-v1.ts'
import { connectV2 } from '../support/client-v2.ts'

/** The TypeScript clients that every server is tried with. */
export const SDK_CLIENTS = ['SDK v1', 'SDK v2 legacy', 'SDK v2 modern'] as const satisfies readonly ClientKind[]

export type SdkClient = (typeof SDK_CLIENTS)[number]

export const connectSdk = (kind: SdkClient, options: ClientOptions): Promise<TestClient> =>
  kind === 'SDK v1' ? connectV1(options) : connectV2(kind, options)

/** The revision a client of this kind speaks with the gateway. */
export const revisionOf = ({ era }: TestClient): string => (era === 'modern' ? '2026-07-28' : '2025-11-25')
