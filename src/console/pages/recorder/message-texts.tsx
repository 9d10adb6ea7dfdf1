import { CopyButton } from '../../parts/copy-button.tsx'
import { JsonText } from '../../parts/json-text.tsx'
import type { MessagePair, ReadMessage } from './align.ts'

const REDACTED = '[redacted]' // what the recorder writes in place of a secret

const sidesOf = ({ client, server }: MessagePair) =>
  [
    { title: 'Client', message: client },
    { title: 'Server', message: server },
  ] as const

/** The texts of a pair beside each other, as they were sent. */
export const MessageTexts = ({ pair, isPretty }: { readonly pair: MessagePair; readonly isPretty: boolean }) => (
  <div class="rec-texts">
    {sidesOf(pair).map(({ title, message }) => (
      <div key={title}>
        {message && (
          <>
            <JsonText
              text={message.text}
              label={`${title} message`}
              isPretty={isPretty && !message.isCut}
              fileName={`${title.toLowerCase()}-message.json`}
            />
            <Redactions message={message} />
          </>
        )}
      </div>
    ))}
  </div>
)

/** Says that the text is not the whole truth. */
const Redactions = ({ message }: { readonly message: ReadMessage }) => {
  const count = message.text.split(REDACTED).length - 1
  if (count === 0) return null
  return (
    <p class="rec-note">
      {count === 1 ? 'One secret is' : `${count} secrets are`} shown as <code>{REDACTED}</code>. The message had the
      real value.
    </p>
  )
}

/** The headers of both messages: those that MCP defines, and of a response its status. */
export const HeadersView = ({ pair }: { readonly pair: MessagePair }) => (
  <div class="rec-texts">
    {sidesOf(pair).map(({ title, message }) => (
      <div key={title}>
        {message?.headers ? (
          <table class="rec-headers">
            <caption class="visually-hidden">Headers of the {title.toLowerCase()} message</caption>
            <tbody>
              {message.headers.map(([name, value]) => (
                <tr key={name}>
                  <th scope="row">{name === ':status' ? 'HTTP status' : name}</th>
                  <td>{value}</td>
                  <td>
                    <CopyButton text={`${name}: ${value}`} label={`Copy ${name}`} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          message && (
            <p class="rec-note">No headers: the message did not travel over HTTP, or has none that MCP defines.</p>
          )
        )}
      </div>
    ))}
  </div>
)
