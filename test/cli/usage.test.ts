/** Wrong usage is exit code 2, with what is wrong on stderr and nothing on stdout that a script could take for a result. */
import { test } from 'tap'
import { run } from './program.ts'

const seeHelp = /See threadwarden( \w+)? --help\.\n$/

for (const [args, message] of [
  [['servee'], /there is no command "servee"\. Did you mean "serve"\?/],
  [['valdate'], /there is no command "valdate"\. Did you mean "validate"\?/],
  [['something-else'], /there is no command "something-else"\. See/],
  [['constructor'], /there is no command "constructor"/],
  [['--config'], /there is no command "--config"/],
  [['validate'], /^threadwarden validate: --config FILE is missing/],
  [['serve'], /^threadwarden serve: --config FILE is missing/],
  [['validate', '--config'], /^threadwarden validate: Option '--config <value>' argument missing/],
  [['serve', '--bogus'], /^threadwarden serve: Unknown option '--bogus'/],
  [['revoke', '--token-id', 'j'], /^threadwarden revoke: --config FILE is missing/],
  [['revok', '--config', 'x'], /there is no command "revok"\. Did you mean "revoke"\?/],
  [['serve', '--strict', '--config', 'x'], /^threadwarden serve: Unknown option '--strict'/],
  [['validate', '--json=yes', '--config', 'x'], /^threadwarden validate: Option '--json' does not take an argument/],
  [['routes'], /^threadwarden routes: --config FILE is missing/],
  [['routes', '--config', 'x', 'y'], /^threadwarden routes: Unexpected argument 'y'/],
  [['explain', '--method', 'GET', '--target', '/'], /^threadwarden explain: --config FILE is missing/],
  [['explain', '--audit', '{'], /^threadwarden explain: --audit is one line of the audit log/],
  [['diff', 'a.yaml', 'b.yaml'], /^threadwarden diff: --config FILE is missing/],
  [['diff', 'a.yaml', 'b.yaml', '--strict'], /^threadwarden diff: Unknown option '--strict'/],
  [['test', 'a.yaml'], /^threadwarden test: --config FILE is missing/],
  [['test', 'a.yaml', '--junit'], /^threadwarden test: Option '--junit <value>' argument missing/],
  [['validate', 'threadwarden.yaml'], /^threadwarden validate: Unexpected argument 'threadwarden\.yaml'/],
] as const) {
  const ended = run(args)
  void test(`threadwarden ${args.join(' ')} is wrong usage`, async (t) => {
    const { code, stdout, stderr } = await ended
    t.same({ code, stdout }, { code: 2, stdout: '' })
    t.match(stderr, message)
    t.match(stderr, seeHelp)
  })
}

void test('threadwarden alone is wrong usage, and says what there is', async (t) => {
  const { code, stdout, stderr } = await run([])
  t.same({ code, stdout }, { code: 2, stdout: '' })
  t.match(stderr, /Usage: threadwarden COMMAND/)
})

void test('commands that are announced and not there yet are refused by name', async (t) => {
  const announced = ['health', 'threads', 'grants', 'store', 'user']
  const ended = await Promise.all(announced.map((name) => run([name, '--config', 'x'])))
  for (const [at, name] of announced.entries()) {
    const stderr = `threadwarden: "${name}" is not supported by this version yet. See threadwarden --help.\n`
    t.same(ended[at], { code: 2, stdout: '', stderr })
  }
})
