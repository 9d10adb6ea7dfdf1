import { useEffect, useState } from 'preact/hooks'
import { Button, IconButton } from './button.tsx'
import { toast } from './toast.tsx'

export interface CopyButtonProps {
  readonly text: string | (() => string) // a function where the text is large
  readonly label?: string | undefined
  readonly shown?: string | undefined // a text beside the icon
}

const SHOWN_MS = 1500

/** Copies a text. Browsers give the clipboard only to pages of https and of this machine; elsewhere the older way is used. */
export const copyText = async (text: string): Promise<void> => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  ;(document.querySelector('dialog[open]') ?? document.body).append(field)
  field.select()
  const isCopied = document.execCommand('copy')
  field.remove()
  if (!isCopied) throw new Error('the browser did not allow it')
}

export const CopyButton = ({ text, label = 'Copy', shown }: CopyButtonProps) => {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => {
    if (!isCopied) return
    const timer = setTimeout(() => setCopied(false), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [isCopied])

  const copy = (): void => {
    copyText(typeof text === 'string' ? text : text()).then(
      () => setCopied(true),
      (error: unknown) => toast(`Not copied: ${error instanceof Error ? error.message : error}`, { kind: 'error' }),
    )
  }
  const icon = isCopied ? 'check' : 'copy'
  const name = isCopied ? 'Copied' : label
  if (shown === undefined) return <IconButton icon={icon} label={name} onClick={copy} />
  return (
    <Button icon={icon} onClick={copy} title={name}>
      {shown}
    </Button>
  )
}
