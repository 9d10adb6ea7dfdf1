import { describe, expect, it } from 'vitest'
import { environmentOf } from './environment.ts'

const OURS = {
  PATH: '/bin',
  HOME: '/home/a',
  LC_ALL: 'C',
  GITHUB_TOKEN: 'secret',
  NODE_OPTIONS: '--inspect',
  TERM: '() { evil; }',
}

describe('the environment of a child', () => {
  it('is the least a program needs, and what is configured', () => {
    expect(environmentOf({ KEY: 'value' }, 'm', OURS, 'linux')).toEqual({
      PATH: '/bin',
      HOME: '/home/a',
      LC_ALL: 'C',
      KEY: 'value',
      DRAGOMAN_CHILD: 'm',
    })
  })

  it('takes the configured value where both have one', () => {
    expect(environmentOf({ PATH: '/opt' }, 'm', OURS, 'linux').PATH).toBe('/opt')
  })

  it('on Windows knows names in any case', () => {
    const ours = { Path: 'C:\\Windows', SystemRoot: 'C:\\Windows', GITHUB_TOKEN: 'secret' }
    expect(environmentOf({}, 'm', ours, 'win32')).toEqual({
      Path: 'C:\\Windows',
      SystemRoot: 'C:\\Windows',
      DRAGOMAN_CHILD: 'm',
    })
    expect(environmentOf({ PATH: 'D:\\' }, 'm', ours, 'win32')).toEqual({
      PATH: 'D:\\',
      SystemRoot: 'C:\\Windows',
      DRAGOMAN_CHILD: 'm',
    })
  })

  it('carries the marks of the gateways above this one', () => {
    expect(environmentOf({}, 'inner', { DRAGOMAN_CHILD: 'outer' }, 'linux').DRAGOMAN_CHILD).toBe('outer,inner')
  })
})
