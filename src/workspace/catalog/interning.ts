import type { MemberList } from './member-list.ts'

const MOST = 4096

/**
 * Makes equal lists one list: whoever holds them shares what is made of it, and can see that nothing has changed.
 * A list nobody holds any more is forgotten.
 */
export const createListInterner = () => {
  const known = new Map<string, WeakRef<MemberList>>()

  return (name: string, list: MemberList): MemberList => {
    const key = `${name}\n${list.hash}`
    const before = known.get(key)?.deref()
    if (before) return before
    if (known.size >= MOST) for (const [old, reference] of known) if (!reference.deref()) known.delete(old)
    known.set(key, new WeakRef(list))
    return list
  }
}
