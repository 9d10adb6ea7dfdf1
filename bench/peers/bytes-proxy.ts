import { createServer } from 'node:http'
import { listening, type Peer } from '../peer.ts'
import { postTo, readBody, reply } from '../raw-proxy.ts'

export const peer: Peer = {
  about: 'node:http front and undici 7 dispatch, the bytes passed through unread',
  dialect: 'modern',
  start: upstream => {
    const post = postTo(upstream.url)
    const server = createServer((request, response) => {
      readBody(request, body => post(request, body, (status, answer) => reply(response, status, answer)))
    })
    return listening(server)
  },
}
