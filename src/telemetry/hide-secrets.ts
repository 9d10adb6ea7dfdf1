const HIDDEN = '[hidden]'

// A member of any object that holds a credential, whoever logged it.
const MEMBERS = /"((?:proxy-)?authorization|(?:set-)?cookie)":(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\])/gi
// Our own tokens, and credentials of a header that ended up in a text.
const TEXTS = /(drg_|\b(?:bearer|basic)\s+)[\w.~+/-]{12,}=*/gi

/** Takes credentials out of a line of the log: a net below everybody's care not to log them. */
export const hideSecrets = (line: string): string =>
  line.replace(MEMBERS, `"$1":"${HIDDEN}"`).replace(TEXTS, `$1${HIDDEN}`)
