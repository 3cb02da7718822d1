/** Help and version go to stdout with exit code 0, and help tells of every option that there is. */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { run } from './program.ts'

for (const form of [['--help'], ['-h'], ['help']]) {
  void test(`threadwarden ${form.join(' ')} lists the commands`, async (t) => {
    const { code, stdout, stderr } = await run(form)
    t.same({ code, stderr }, { code: 0, stderr: '' })
    for (const word of [
      'Usage: threadwarden COMMAND',
      'serve',
      'validate',
      'revoke',
      '--help',
      '--version',
      'Exit codes: 0 fine',
    ])
      t.ok(stdout.includes(word), word)
  })
}

for (const [command, options] of [
  ['serve', ['--config FILE', 'SIGTERM']],
  ['validate', ['--config FILE', '--strict', '--json']],
  ['routes', ['--config FILE', '--json']],
  [
    'explain',
    [
      '--config FILE',
      '--method M',
      '--target PATH',
      '--token-file F',
      '--claims F',
      '--issuer KEY',
      '--body F',
      '--owner USER',
      '--deleted',
      '--history H',
      '--audit LINE',
      '--json',
    ],
  ],
  ['diff', ['--config FILE', 'OLD NEW', '--json']],
  ['test', ['--config FILE', 'TEST…', '--junit FILE', '--json']],
  ['revoke', ['--config FILE', '--token-id ID', '--user USER', '--before TIME', '--lift', '--list', '--json']],
] as const) {
  void test(`threadwarden ${command} --help tells of its options and exit codes`, async (t) => {
    const [plain, beside] = await Promise.all([run([command, '--help']), run([command, '--bogus', '-h'])])
    const { code, stdout, stderr } = plain
    t.same({ code, stderr }, { code: 0, stderr: '' })
    for (const word of [`threadwarden ${command}`, 'Exit codes:', ...options]) t.ok(stdout.includes(word), word)
    t.same(beside, plain, 'also beside what is wrong')
  })
}

void test('threadwarden --version is that of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  const ended = await Promise.all([run(['--version']), run(['-V'])])
  for (const one of ended) t.same(one, { code: 0, stdout: `${version}\n`, stderr: '' })
})
