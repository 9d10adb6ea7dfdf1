import { describe, expect, it } from 'vitest'
import { bytesText, createProgress } from './progress.ts'

const watch = (isTTY: boolean, total?: number) => {
  const written: string[] = []
  const clock = { now: 1_000_000 }
  const progress = createProgress({
    what: 'importing',
    total,
    shown: bytesText,
    out: { isTTY, write: text => written.push(text) },
    now: () => clock.now,
  })
  return { written, clock, progress }
}

describe('progress', () => {
  it('is a bar on a terminal, redrawn in place and cleared at the end', () => {
    const { written, clock, progress } = watch(true, 2048)
    progress.at(512)
    progress.at(600) // within the redraw interval
    clock.now += 1000
    progress.at(2048)
    progress.end()
    progress.end() // must not clear output printed since
    expect(written).toEqual([
      '\r\u001b[Kimporting  [########......................]  25%  512 B',
      '\r\u001b[Kimporting  [##############################] 100%  2.0 KiB',
      '\r\u001b[K',
    ])
  })

  it('is an occasional line elsewhere, and nothing for quick work', () => {
    const { written, clock, progress } = watch(false, 4096)
    progress.at(1)
    clock.now += 6000
    progress.at(1024)
    progress.end()
    expect(written).toEqual(['importing: 1.0 KiB of 4.0 KiB\n'])
  })

  it('of unknown length shows the amount done', () => {
    const { written, progress } = watch(true)
    progress.at(3)
    expect(written).toEqual(['\r\u001b[Kimporting  3 B'])
  })
})

describe('bytes', () => {
  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1536, '1.5 KiB'],
    [150 * 1024, '150 KiB'],
    [5 * 1024 ** 3, '5.0 GiB'],
  ])('%i are %s', (bytes, text) => {
    expect(bytesText(bytes)).toBe(text)
  })
})
