/** Wrong usage is exit code 2, with what is wrong on stderr and nothing on stdout that a script could take for a result. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { commandsOn, deployment } from './deployment.ts'
import { run } from './in-process.ts'
import { configFile } from '../../testing/support/program.ts'

const seeHelp = /See threadwarden( \w+)* --help\.\n$/

for (const [args, message] of [
  [['servee'], /there is no command "servee"\. Did you mean "serve"\?/],
  [['valdate'], /there is no command "valdate"\. Did you mean "validate"\?/],
  [['something-else'], /there is no command "something-else"\. See/],
  [['constructor'], /there is no command "constructor"/],
  [['--config'], /there is no command "--config"/],
  [['validate'], /^threadwarden validate: --config FILE is missing/],
  [['serve'], /^threadwarden serve: --config FILE is missing/],
  [['validate', '--config'], /^threadwarden validate: Option '-c, --config <value>' argument missing/],
  [['serve', '--bogus'], /^threadwarden serve: Unknown option '--bogus'/],
  [['revoke', '--token-id', 'j'], /^threadwarden revoke: --config FILE is missing/],
  [['revok', '--config', 'x'], /there is no command "revok"\. Did you mean "revoke"\?/],
  [['serve', '--strict', '--config', 'x'], /^threadwarden serve: Unknown option '--strict'/],
  [['validate', '--json=yes', '--config', 'x'], /^threadwarden validate: Option '--json' does not take an argument/],
  [['routes'], /^threadwarden routes: --config FILE is missing/],
  [['routes', '--config', 'x', 'y'], /^threadwarden routes: Unexpected argument 'y'/],
  [['explain', '--method', 'GET', '--target', '/'], /^threadwarden explain: --config FILE is missing/],
  [['explain', '--audit', '{'], /^threadwarden explain: --audit must be one line of the audit log/],
  [['diff', 'a.yaml', 'b.yaml'], /^threadwarden diff: --config FILE is missing/],
  [['diff', 'a.yaml', 'b.yaml', '--strict'], /^threadwarden diff: Unknown option '--strict'/],
  [['test', 'a.yaml'], /^threadwarden test: --config FILE is missing/],
  [['test', 'a.yaml', '--junit'], /^threadwarden test: Option '--junit <value>' argument missing/],
  [['validate', 'threadwarden.yaml'], /^threadwarden validate: Unexpected argument 'threadwarden\.yaml'/],
] as const) {
  void test(`threadwarden ${args.join(' ')} is wrong usage`, async (t) => {
    const { code, stdout, stderr } = await run(t, args)
    t.same({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, message)
    t.match(stderr, seeHelp)
  })
}

for (const [line, message] of [
  ['threads lst', /^threadwarden threads: there is no command "lst"\. Did you mean "list"\?/],
  ['threads constructor', /^threadwarden threads: there is no command "constructor"/],
  ['threads --config x list', /^threadwarden threads: there is no command "--config"/],
  ['threads health', /^threadwarden threads: there is no command "health"/],
  ['threads list', /^threadwarden threads list: --config FILE is missing/],
  ['threads list --deleted --all', /either --deleted or --all/],
  ['threads list --limit 0', /--limit must be a whole number, 1 or more/],
  ['threads list --user alice', /--user must be a user id: issuer:subject, or anonymous/],
  ['threads list t-1', /Unexpected argument 't-1'/],
  ['threads owner', /name one thread by its id/],
  ['threads owner a b', /name one thread by its id/],
  ['threads owner clear', /"clear" is not a thread id/],
  ['threads assign t-1', /--to USER is missing/],
  ['threads assign t-1 --to alice', /--to must be a user id/],
  ['threads assign t-1 --to corp:a --expect alice', /--expect must be a user id/],
  ['threads transfer --from corp:a', /name --from USER and --to USER/],
  ['threads transfer --from corp:a --to corp:a', /--from and --to name the same user/],
  ['threads transfer --from corp:a --to corp:b --thread .', /"\." is not a thread id/],
  ['threads revoke', /name one thread/],
  ['threads prune', /name --deleted-before or --unused-since/],
  ['threads prune --unused-since yesterday', /--unused-since must be a time with its zone .* or an age \(90d, 12h\)/],
  ['threads prune --deleted-before 2999-01-01T00:00:00Z', /--deleted-before 2999-01-01T00:00:00Z is in the future/],
  ['threads export --format xml', /--format must be csv or jsonl/],
  ['threads import', /name one source: FILE \(or - for stdin\), --from-upstream or --from-observed/],
  ['threads import a.csv b.csv', /name one source/],
  ['threads import a.csv --from-observed', /name one source/],
  ['threads import -', /the format of stdin is not known: name --format csv or jsonl/],
  ['threads import threads.txt', /the format of threads\.txt is not known/],
  ['threads import /nowhere/threads.csv', /\/nowhere\/threads\.csv does not exist/],
  ['threads import - --format csv --map a.csv', /--map goes with --from-upstream/],
  ['threads import --from-observed --issuer corp', /--issuer goes with --from-upstream/],
  ['threads import --from-observed --format csv', /--format goes with a file/],
  ['threads import --from-upstream', /name either --map FILE or --owner-field FIELD/],
  ['threads import --from-upstream --owner-field createdById', /--owner-field FIELD goes with --issuer KEY/],
  ['threads import --from-upstream --owner-field a --issuer corp:x', /--issuer corp:x is not an issuer id: name a key of/],
  ['threads import --from-upstream --owner-field a --issuer corp --agent ..', /--agent "\.\." is not an agent id/],
  ['threads import --from-upstream --map /nowhere/map.csv', /does not exist/],
  ['threads import package.json --format jsonl --report package.json', /--report would overwrite package\.json/],
  ['grants list', /name --thread ID, --user USER or --group GROUP/],
  ['grants list --thread a --user corp:a', /name one of --thread ID, --user USER and --group GROUP/],
  ['grants list --user corp:a --group corp:b', /name either --user USER or --group GROUP/],
  ['grants add --user corp:a --right read', /--thread ID is missing/],
  ['grants add --thread a --user corp:a', /--right must be read or write/],
  ['grants add --thread a --user corp:a --right own', /--right must be read or write/],
  ['grants add --thread a --right read', /name either --user USER or --group GROUP/],
  ['grants add --thread a --group staff --right read', /--group must be written issuer:name/],
  ['grants add --thread a --user anonymous --right read', /--user must be written issuer:name/],
  ['grants remove --thread a', /name either --user USER or --group GROUP/],
  ['store backup', /name one file for the copy/],
  ['user export', /name one user: issuer:subject/],
  ['user export alice', /USER must be a user id/],
  ['user erase corp:a corp:b', /name one user/],
] as const) {
  void test(`threadwarden ${line} is wrong usage`, async (t) => {
    const { code, stdout, stderr } = await run(t, line.split(' '))
    t.same({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, message)
    t.match(stderr, seeHelp)
  })
}

for (const [line, message] of [
  [
    'threads assign t-1 --to crop:a',
    /^threadwarden threads assign: --to crop:a: the configuration has no issuer "crop": did you mean "corp"\?/,
  ],
  ['threads transfer --from gone:a --to crop:a', /no issuer "crop"/],
  ['threads assign t-1 --to anonymous', /there are no anonymous callers with authentication\.mode: required/],
  ['grants add --thread a --group crop:staff --right read', /--group crop:staff: the configuration has no issuer "crop"/],
  ['threads import --from-upstream --owner-field a --issuer crop', /--issuer crop: the configuration has no issuer "crop"/],
] as const) {
  void test(`threadwarden ${line} is wrong usage where no such issuer is configured, and nothing is written`, async (t) => {
    const { store, command } = await deployment(t)
    const { code, stdout, stderr } = await command(...line.split(' '))
    t.same({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, message)
    t.equal(await store.isEmpty(''), true)
  })
}

for (const line of [
  'threads list',
  'threads owner a',
  'threads stats',
  'threads assign a --to corp:a',
  'threads transfer --from corp:a --to corp:b',
  'threads revoke a',
  'threads prune --unused-since 90d',
  'threads export',
  'threads import --from-observed',
  'grants list --thread a',
  'grants add --thread a --user corp:a --right read',
  'grants remove --thread a --user corp:a',
  'user export corp:a',
  'user erase corp:a --yes',
]) {
  void test(`threadwarden ${line} makes no store where there is none: no gateway would look at it`, async (t) => {
    const { file, folder } = configFile(t)
    const { code, stdout, stderr } = await commandsOn(t, file).command(...line.split(' '))
    t.same({ code, stdout }, { code: 1, stdout: '' })
    t.match(
      stderr,
      /^error: the store .*ownership\.db does not exist: check ownership\.store, or create it with threadwarden store migrate\n$/,
    )
    t.equal(existsSync(join(folder, 'ownership.db')), false)
  })
}

void test('threadwarden alone says what there is', async (t) => {
  const { code, stdout, stderr } = await run(t, [])
  t.same({ code, stderr }, { code: 0, stderr: '' })
  t.match(stdout, /Usage: threadwarden COMMAND/)
})
