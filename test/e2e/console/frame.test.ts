import { expect, test } from 'vitest'
import { axe, describeConsole, showAs } from '../../support/console.ts'

const PAGES = ['overview', 'explore', 'recorder', 'memory', 'connect', 'configuration']

describeConsole('the frame of the console', site => {
  test.each(PAGES)('%s is shown without a serious violation, light and dark', async id => {
    const page = await site.openConsole(id)
    expect(await axe(page)).toEqual([])
    await showAs(page, 'dark')
    expect(await axe(page)).toEqual([])
  })
})
