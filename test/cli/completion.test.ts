/** `threadwarden completion`: the scripts know every command and option, and bash completes with them. */
import { spawnSync } from 'node:child_process'
import { test } from 'tap'
import { run } from './in-process.ts'

for (const shell of ['bash', 'zsh', 'fish']) {
  void test(`the script for ${shell} names commands and options`, async (t) => {
    const { code, stdout, stderr } = await run(t, ['completion', shell])
    t.same({ code, stderr }, { code: 0, stderr: '' })
    for (const word of ['validate', 'threads list', 'user erase', 'completion', 'token-file', 'owner-field', 'dry-run'])
      t.ok(stdout.includes(word), word)
  })
}

for (const args of [[], ['powershell'], ['constructor'], ['bash', 'zsh']]) {
  void test(`threadwarden completion ${args.join(' ')} is wrong usage`, async (t) => {
    const { code, stdout, stderr } = await run(t, ['completion', ...args])
    t.same({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, /^threadwarden completion: name one shell: bash, zsh or fish\nSee threadwarden completion --help\.\n$/)
  })
}

const hasBash = spawnSync('bash', ['--version']).status === 0

void test(
  'bash completes commands, their commands and options, and leaves values to its own completion',
  { skip: !hasBash },
  async (t) => {
    const { stdout: script } = await run(t, ['completion', 'bash'])
    const complete = (...words: readonly string[]): string => {
      const run = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _threadwarden; echo "${COMPREPLY[*]}"'
      return spawnSync('bash', ['-c', `${script}\n${run}`, 'bash', 'threadwarden', ...words], { encoding: 'utf8' }).stdout.trim()
    }
    t.match(complete(''), /^init serve validate .*threads/)
    t.equal(complete('val'), 'validate')
    t.match(complete('threads', ''), /^list owner stats/)
    t.equal(complete('threads', 'list', '--s'), '--scope')
    t.equal(complete('revoke', '--t'), '--token-id')
    t.equal(complete('validate', '--config', ''), '')
    t.equal(complete('servee', ''), '')
    t.equal(complete('completion', ''), 'bash zsh fish')
    t.match(complete('serve', '-'), /--config -c --pretty --help/)
  },
)

const hasZsh = spawnSync('zsh', ['--version']).status === 0

void test('zsh completes with the same script', { skip: !hasZsh }, async (t) => {
  const { stdout: script } = await run(t, ['completion', 'zsh'])
  const complete = (...words: readonly string[]): string => {
    const call = 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); emulate ksh; _threadwarden; echo "${COMPREPLY[*]}"'
    const { stdout, stderr } = spawnSync(
      'zsh',
      ['-f', '-c', `autoload -U +X compinit && compinit -u -D\n${script}\n${call}`, 'zsh', 'threadwarden', ...words],
      { encoding: 'utf8' },
    )
    return `${stdout}${stderr}`.trim()
  }
  t.match(complete(''), /^init serve validate .*threads/)
  t.match(complete('threads', ''), /^list owner stats/)
  // zsh itself leaves out what does not begin with what was typed.
  t.ok(complete('threads', 'list', '--s').split(' ').includes('--scope'))
})

const hasFish = spawnSync('fish', ['--version']).status === 0

void test('fish completes commands, their commands and options', { skip: !hasFish }, async (t) => {
  const { stdout: script } = await run(t, ['completion', 'fish'])
  const complete = (line: string): readonly string[] => {
    const { stdout } = spawnSync('fish', ['--no-config', '-c', `${script}\ncomplete -C '${line}'`], { encoding: 'utf8' })
    return stdout.split('\n').map((one) => one.split('\t')[0] ?? '')
  }
  t.ok(['serve', 'validate', 'threads'].every((name) => complete('threadwarden ').includes(name)))
  t.same(complete('threadwarden val'), ['validate', ''])
  t.ok(['list', 'owner', 'stats'].every((name) => complete('threadwarden threads ').includes(name)))
  t.same(complete('threadwarden threads list --s'), ['--scope', ''])
  t.same(complete('threadwarden revoke --t'), ['--token-id', ''])
  t.ok(complete('threadwarden completion ').includes('zsh'))
})
