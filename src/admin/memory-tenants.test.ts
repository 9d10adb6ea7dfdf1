import { describe, expect, it } from 'vitest'
import { type TenantRules, tenantLabel, visibleTenants } from './memory-tenants.ts'

const STORED = ['anybody', 'principal:ann', 'principal:bob', 'workspace:default', 'workspace:old']
const PERSONAL: TenantRules = {
  tenantBy: 'principal',
  workspaces: ['default'],
  withoutToken: 'local',
  isTokenRequired: true,
}
const viewer = (principal?: string) => ({ role: 'viewer', principal }) as const
const owner = { role: 'owner', principal: 'local' } as const

describe('a memory for each principal', () => {
  it('shows viewers their own one, and no other', () => {
    expect(visibleTenants(viewer('ann'), PERSONAL, STORED)).toEqual(['principal:ann'])
    expect(visibleTenants(viewer('carl'), PERSONAL, STORED)).toEqual(['principal:carl'])
  })
  it('shows callers without a token what MCP calls without a token use', () => {
    const open = { ...PERSONAL, isTokenRequired: false }
    expect(visibleTenants(viewer('local'), open, STORED)).toEqual(['principal:local'])
    expect(visibleTenants(viewer('local'), { ...open, withoutToken: undefined }, STORED)).toEqual(['anybody'])
  })
  it('shows owners all of them, but none of other servers in the same folder', () => {
    expect(visibleTenants(owner, PERSONAL, STORED)).toEqual([
      'principal:local',
      'anybody',
      'principal:ann',
      'principal:bob',
    ])
  })
})

it('a memory for each workspace is seen by all who may use every workspace; what is left of others by owners', () => {
  const shared: TenantRules = { ...PERSONAL, tenantBy: 'workspace' }
  expect(visibleTenants(viewer('ann'), shared, STORED)).toEqual(['workspace:default'])
  expect(visibleTenants(owner, shared, STORED)).toEqual(['workspace:default', 'workspace:old'])
})

it('names them in words', () => {
  expect(['anybody', 'principal:a:b', 'workspace:default'].map(tenantLabel)).toEqual([
    'anonymous callers',
    'principal a:b',
    'workspace default',
  ])
})
