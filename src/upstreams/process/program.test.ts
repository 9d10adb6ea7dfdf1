import { describe, expect, it } from 'vitest'
import { environmentOf, type Machine, programOf } from './program.ts'

const windows = (...files: string[]): Machine => ({
  platform: 'win32',
  env: {
    Path: 'C:\\Windows;C:\\Program Files\\nodejs',
    PATHEXT: '.COM;.EXE;.BAT;.CMD',
    ComSpec: 'C:\\Windows\\cmd.exe',
  },
  exists: path => files.includes(path),
})

describe('what is started for a command', () => {
  it.each(['linux', 'darwin'] as const)('on %s is the command itself', platform => {
    const machine: Machine = { platform, env: {}, exists: () => true }
    expect(programOf('npx', ['-y', 'a b'], machine)).toEqual({ file: 'npx', args: ['-y', 'a b'], isVerbatim: false })
  })

  it('on Windows is a real program by its whole path', () => {
    const machine = windows('C:\\Program Files\\nodejs\\node.exe')
    const program = { file: 'C:\\Program Files\\nodejs\\node.exe', args: ['a b'], isVerbatim: false }
    expect(programOf('node', ['a b'], machine)).toEqual(program)
    expect(programOf('node.exe', ['a b'], machine)).toEqual(program)
  })

  it('on Windows is cmd.exe for a batch file, however it is named', () => {
    const machine = windows('C:\\Program Files\\nodejs\\npx.cmd', 'D:\\tools\\x.bat')
    const npx = {
      file: 'C:\\Windows\\cmd.exe',
      args: ['/d', '/e:ON', '/v:OFF', '/s', '/c', '""C:\\Program Files\\nodejs\\npx.cmd" "-y" "some server""'],
      isVerbatim: true,
    }
    expect(programOf('npx', ['-y', 'some server'], machine)).toEqual(npx)
    expect(programOf('npx.cmd', ['-y', 'some server'], machine)).toEqual(npx)
    expect(programOf('D:\\tools\\x', [], machine)?.args.at(-1)).toBe('""D:\\tools\\x.bat""')
  })

  it('takes the first folder of PATH, and in it the first extension', () => {
    const machine = windows('C:\\Windows\\x.cmd', 'C:\\Windows\\x.exe', 'C:\\Program Files\\nodejs\\x.com')
    expect(programOf('x', [], machine)?.file).toBe('C:\\Windows\\x.exe')
  })

  it('leaves what is not found to the operating system, which says so', () => {
    expect(programOf('nowhere', ['a'], windows())).toEqual({ file: 'nowhere', args: ['a'], isVerbatim: false })
  })

  it.each([
    ['a & del *', '"a & del *"'],
    ['say "hi"', '"say ""hi"""'],
    ['100%PATH%', '"100%%cd:~,%PATH%%cd:~,%"'],
    ['C:\\dir\\', '"C:\\dir\\\\"'],
    ['\\"', '"\\\\"""'],
    ['', '""'],
  ])('gives a batch file the argument %j as text, not as code', (argument, quoted) => {
    const line = programOf('npx', [argument], windows('C:\\Windows\\npx.cmd'))?.args.at(-1)
    expect(line).toBe(`""C:\\Windows\\npx.cmd" ${quoted}"`)
  })

  it('refuses a batch file arguments that would be further lines', () => {
    expect(programOf('npx', ['a\r\ndel *'], windows('C:\\Windows\\npx.cmd'))).toBeUndefined()
  })
})

const INHERITED = {
  PATH: '/bin',
  HOME: '/home/a',
  LC_ALL: 'C',
  GITHUB_TOKEN: 'secret',
  NODE_OPTIONS: '--inspect',
  TERM: '() { evil; }',
}

describe('the environment of a child', () => {
  it('is the least a program needs, and what is configured', () => {
    expect(environmentOf({ KEY: 'value' }, 'm', INHERITED, 'linux')).toEqual({
      PATH: '/bin',
      HOME: '/home/a',
      LC_ALL: 'C',
      KEY: 'value',
      DRAGOMAN_CHILD: 'm',
    })
  })

  it('takes the configured value where both have one', () => {
    expect(environmentOf({ PATH: '/opt' }, 'm', INHERITED, 'linux').PATH).toBe('/opt')
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

  it('keeps the tags of outer gateways', () => {
    expect(environmentOf({}, 'inner', { DRAGOMAN_CHILD: 'outer' }, 'linux').DRAGOMAN_CHILD).toBe('outer,inner')
  })
})
