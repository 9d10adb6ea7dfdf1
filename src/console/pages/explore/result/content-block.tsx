import { isObject, type JsonObject } from '../../../mcp/messages.ts'
import { Icon } from '../../../parts/icon.tsx'
import { JsonTree } from '../../../parts/json-tree.tsx'
import { hrefTo } from '../../../router.ts'
import { textMember } from '../kinds.ts'
import { Media, mediaKind } from './media.tsx'
import { TextBlock } from './text-block.tsx'

export interface ContentBlockProps {
  readonly block: unknown
  readonly target: string
  readonly label: string
}

/** One block of content, as tools, prompts and models send it. */
export const ContentBlock = ({ block, target, label }: ContentBlockProps) => {
  if (!isObject(block)) return <JsonTree value={block} />
  const { type } = block
  return (
    <div class="content-block">
      {type === 'text' && typeof block.text === 'string' ? (
        <TextBlock text={block.text} label={label} />
      ) : type === 'image' || type === 'audio' ? (
        <Media data={block.data} mimeType={textMember(block, 'mimeType') ?? ''} name={String(type)} />
      ) : type === 'resource_link' ? (
        <ResourceLink link={block} target={target} />
      ) : type === 'resource' && isObject(block.resource) ? (
        <ResourceContents contents={block.resource} target={target} />
      ) : (
        <JsonTree value={block} />
      )}
      <Annotations block={block} />
    </div>
  )
}

const Annotations = ({ block: { annotations, _meta } }: { readonly block: JsonObject }) => (
  <>
    {isObject(annotations) && Object.keys(annotations).length > 0 && (
      <p class="explore-note mono">{JSON.stringify(annotations).slice(0, 500)}</p>
    )}
    {isObject(_meta) && Object.keys(_meta).length > 0 && <JsonTree value={_meta} name="_meta" openDepth={0} />}
  </>
)

/** A link to a resource; it opens here. */
const ResourceLink = ({ link, target }: { readonly link: JsonObject; readonly target: string }) => {
  const uri = textMember(link, 'uri') ?? ''
  return (
    <p class="resource-link">
      <Icon name="link" />
      <a href={hrefTo('explore', [target, 'resources', uri])}>
        {textMember(link, 'title') ?? textMember(link, 'name') ?? uri}
      </a>
      <span class="mono quiet">{uri}</span>
      {textMember(link, 'mimeType') && <span class="mono quiet">{textMember(link, 'mimeType')}</span>}
      {textMember(link, 'description') && <span class="quiet">{textMember(link, 'description')}</span>}
    </p>
  )
}

interface ResourceContentsProps {
  readonly contents: JsonObject
  readonly target: string
}

/** The contents of a resource: a text, or bytes. */
export const ResourceContents = ({ contents, target }: ResourceContentsProps) => {
  const uri = textMember(contents, 'uri') ?? ''
  const mimeType = textMember(contents, 'mimeType') ?? ''
  const { text, blob } = contents
  return (
    <div class="resource-contents">
      <p class="resource-link">
        <Icon name="link" />
        <a href={hrefTo('explore', [target, 'resources', uri])} class="mono">
          {uri}
        </a>
        {mimeType !== '' && mediaKind(mimeType) === undefined && <span class="mono quiet">{mimeType}</span>}
      </p>
      {typeof text === 'string' ? (
        <TextBlock text={text} label={uri} mimeType={mimeType} />
      ) : typeof blob === 'string' ? (
        <Media data={blob} mimeType={mimeType} name={uri} />
      ) : (
        <JsonTree value={contents} />
      )}
    </div>
  )
}
