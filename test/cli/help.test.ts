/** Help and version go to stdout with exit code 0, and help tells of every option that there is. */
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { run } from './in-process.ts'

for (const form of [['--help'], ['-h'], ['help']]) {
  void test(`threadwarden ${form.join(' ')} lists the commands`, async (t) => {
    const { code, stdout, stderr } = await run(t, form)
    t.same({ code, stderr }, { code: 0, stderr: '' })
    for (const word of [
      'Usage: threadwarden COMMAND',
      'serve',
      'validate',
      'revoke',
      'threads',
      'grants',
      'store',
      'user',
      '--help',
      '--version',
      'Exit codes: 0 success',
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
    const [plain, beside] = await Promise.all([run(t, [command, '--help']), run(t, [command, '--bogus', '-h'])])
    const { code, stdout, stderr } = plain
    t.same({ code, stderr }, { code: 0, stderr: '' })
    for (const word of [`threadwarden ${command}`, 'Exit codes:', ...options]) t.ok(stdout.includes(word), word)
    t.same(beside, plain, 'also beside what is wrong')
  })
}

for (const [group, commands] of [
  ['threads', ['list', 'owner', 'stats', 'assign', 'transfer', 'revoke', 'prune', 'import', 'export']],
  ['grants', ['list', 'add', 'remove']],
  ['store', ['migrate', 'backup']],
  ['user', ['export', 'erase']],
] as const) {
  void test(`threadwarden ${group} --help lists its commands, and threadwarden ${group} alone does so, too`, async (t) => {
    const told = await run(t, [group, '--help'])
    t.match(told, { code: 0, stderr: '' })
    for (const name of commands) t.match(told.stdout, new RegExp(`^  ${name} +\\w`, 'm'))
    t.same(await run(t, [group, '-h']), told)
    t.same(await run(t, [group]), told)
  })
}

for (const [command, options] of [
  ['threads list', ['--user USER', '--agent AGENT', '--deleted', '--all', '--limit N', '--json']],
  ['threads owner', ['ID', '--json']],
  ['threads stats', ['--json']],
  ['threads assign', ['ID', '--to USER', '--expect', '--json']],
  ['threads transfer', ['--from USER', '--to USER', '--thread ID', '--quiet', '--json']],
  ['threads revoke', ['ID', '--json']],
  ['threads prune', ['--deleted-before WHEN', '--unused-since WHEN', '--dry-run', '--quiet', '--json']],
  [
    'threads import',
    [
      'FILE',
      '--format csv|jsonl',
      '--from-upstream',
      '--map FILE',
      '--owner-field FIELD',
      '--issuer KEY',
      '--agent AGENT',
      '--token-file FILE',
      '--from-observed',
      '--dry-run',
      '--report FILE',
      '--quiet',
      '--json',
    ],
  ],
  ['threads export', ['--format', '--output FILE', '--all', '--quiet']],
  ['grants list', ['--thread ID', '--user USER', '--group GROUP', '--json']],
  ['grants add', ['--thread ID', '--user USER', '--group GROUP', '--right RIGHT', '--json']],
  ['grants remove', ['--thread ID', '--user USER', '--group GROUP', '--json']],
  ['store migrate', ['--check', '--json']],
  ['store backup', ['TO', '--force', '--quiet', '--json']],
  ['user export', ['USER', '--output FILE']],
  ['user erase', ['USER', '--yes', '--dry-run', '--quiet', '--json']],
] as const) {
  void test(`threadwarden ${command} --help tells of its options and exit codes`, async (t) => {
    const { code, stdout, stderr } = await run(t, [...command.split(' '), '--help', '--bogus'])
    t.same({ code, stderr }, { code: 0, stderr: '' })
    for (const word of [`threadwarden ${command}`, '--config FILE', 'Exit codes:', ...options]) t.ok(stdout.includes(word), word)
    for (const line of stdout.split('\n')) t.ok(line.length <= 128, line)
  })
}

void test('threadwarden --version is that of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }
  const ended = await Promise.all([run(t, ['--version']), run(t, ['-V']), run(t, ['-v'])])
  for (const one of ended) t.same(one, { code: 0, stdout: `${version}\n`, stderr: '' })
})
