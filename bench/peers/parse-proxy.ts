import { createServer } from 'node:http'
import { listening, type Peer } from '../peer.ts'
import { postTo, readBody, reply } from '../raw-proxy.ts'

interface Message {
  id: unknown
  params: { name: string }
}

// What the gateway shows → what the upstream calls it. The names are equal so that every contestant gets equal calls.
const names = new Map([
  ['echo', 'echo'],
  ['big', 'big'],
])

export const peer: Peer = {
  about: 'node:http front and undici 7 dispatch: JSON.parse, rewrite id and tool name, JSON.stringify, both ways',
  dialect: 'modern',
  start: upstream => {
    const post = postTo(upstream.url)
    let lastId = 0
    const server = createServer((request, response) => {
      readBody(request, body => {
        const message: Message = JSON.parse(body.toString())
        const { id } = message
        message.id = ++lastId
        message.params.name = names.get(message.params.name) ?? message.params.name
        post(request, JSON.stringify(message), (status, bytes) => {
          const answer: Message = JSON.parse(bytes.toString())
          answer.id = id
          reply(response, status, JSON.stringify(answer))
        })
      })
    })
    return listening(server)
  },
}
