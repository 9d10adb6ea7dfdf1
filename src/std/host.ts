// Names and addresses of hosts in URLs and Host headers.

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/i

/** True for names and addresses that only this machine can reach. */
export const isLoopback = (host: string): boolean =>
  LOOPBACK.test(host.includes(':') && !host.startsWith('[') ? `[${host}]` : host)

/** The host without its port; undefined if it is malformed. */
export const hostName = (host: string): string | undefined =>
  /^(\[[^\]]*\]|[^:@/?#\\]+)(:\d+)?$/.exec(host)?.[1]?.toLowerCase()

/** True for https, and for http that does not leave this machine: what secrets may be sent over. */
export const isSecretSafe = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname))

/** Addresses that stand for all addresses of the machine are no place to connect to. */
const REACHABLE: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }

/** The URL of a gateway that listens there. */
export const originOf = (listenHost: string, port: number): string => {
  const host = REACHABLE[listenHost] ?? listenHost
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
