import { expect, test } from 'vitest'
import { loadConfig } from './load.ts'

const env = { POD_IP: '10.0.0.5', HOME: '/' }
const load = async (cluster: unknown) => (await loadConfig({ value: { mcpServers: 'default', cluster }, env })).cluster

test('without the section there is none, and an empty one has defaults', async () => {
  expect(await load(undefined)).toBeUndefined()
  expect(await load({})).toEqual({ listen: undefined, address: undefined, labels: [], tls: undefined })
})

test('the section is read with its variables', async () => {
  const cluster = { listen: '0.0.0.0:8766', address: 'http://${POD_IP}:8766/', labels: ['gpu', 'eu-1'] }
  expect(await load(cluster)).toEqual({
    listen: { host: '0.0.0.0', port: 8766 },
    address: 'http://10.0.0.5:8766',
    labels: ['gpu', 'eu-1'],
    tls: undefined,
  })
  expect((await load({ listen: '[::1]:0' }))?.listen).toEqual({ host: '::1', port: 0 })
})

test.each([
  [{ listen: '8766' }, 'cluster.listen: expected a host and a port, like "0.0.0.0:8766"'],
  [{ listen: '0.0.0.0:99999' }, 'cluster.listen: expected a host and a port'],
  [{ listen: 'http://a:1' }, 'cluster.listen: expected a host and a port'],
  [{ address: '10.0.0.5:8766' }, 'cluster.address: expected the URL of a host and a port without a path'],
  [{ address: 'http://a:1/mcp' }, 'cluster.address: expected the URL'],
  [{ address: 'http://user@a:1' }, 'cluster.address: expected the URL'],
  [{ address: 'http://${NO_IP}:1' }, 'cluster.address: the variable NO_IP is not set'],
  [{ labels: ['a b'] }, 'cluster.labels[0]: expected letters, digits'],
  [{ tls: { cert: 'a' } }, 'cluster.tls.key: expected a string'],
  [{ address: 'https://a:1' }, 'cluster.tls: expected certificates, because "address" is https'],
  [
    { address: 'http://a:1', tls: { cert: 'a', key: 'b', ca: 'c' } },
    'cluster.address: expected an https URL, because "tls" is given',
  ],
  [{ adress: 'x' }, 'cluster.adress: unknown key; did you mean "address"?'],
  ['yes', 'cluster: expected an object'],
])('%j is rejected', async (cluster, message) => {
  await expect(load(cluster)).rejects.toThrow(message)
})
