/**
 * The policies that are shipped: each is valid and draws no warning under a configuration that it fits, passes its own tests,
 * and has no rule that its tests would not miss.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test, type Test } from 'tap'
import { parse, stringify } from 'yaml'
import { prepare } from '../../src/snapshot/load.ts'
import { runTests } from '../../src/tools/simulate/run-tests.ts'
import { loadTests } from '../../src/tools/simulate/test-file.ts'
import { configFile, run } from '../../testing/support/program.ts'
import { ROOT } from '../docs/markdown.ts'

/** What each needs of a configuration. */
const POLICIES: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  default: {},
  'single-team': {},
  'multi-tenant': {},
  'read-only-support': {},
  'managed-platform': { 'upstream.userScoped': true },
}

interface PolicyFile {
  readonly rules: readonly { readonly name?: string; readonly allow?: readonly string[]; readonly threads?: readonly string[] }[]
  readonly sharing?: boolean
}

const policyOf = (name: string): string => join(ROOT, 'policies', `${name}.yaml`)
const testsOf = (name: string): string => join(ROOT, 'policies/tests', `${name}.test.yaml`)

for (const [name, changes] of Object.entries(POLICIES)) {
  void test(`${name}: no faults and no warnings`, async (t) => {
    const { file } = configFile(t, { ...changes, policy: policyOf(name) })
    t.same(await run(t, ['validate', '--config', file, '--strict']), { code: 0, stdout: `${file} is valid\n`, stderr: '' })
  })

  void test(`${name}: its tests pass`, async (t) => {
    const { file } = configFile(t, { ...changes, policy: policyOf(name) })
    const { code, stdout } = await run(t, ['test', '--config', file, '--json', testsOf(name)])
    const { passed, failed } = JSON.parse(stdout) as { readonly passed: number; readonly failed: number }
    t.same({ code, failed }, { code: 0, failed: 0 })
    t.ok(passed > 10)
  })

  void test(`${name}: every rule has a name, and its tests fail without it`, (t) => {
    const policy = parse(readFileSync(policyOf(name), 'utf8')) as PolicyFile
    t.same(failing(t, name, policy), [], 'with all of them none fails')
    for (const rule of policy.rules) {
      t.type(rule.name, 'string')
      // What allows nobody is there to be seen.
      if (rule.allow?.length === 0) continue
      const rules = policy.rules.filter((one) => one !== rule)
      t.not(failing(t, name, { ...policy, rules }).length, 0, `without ${String(rule.name)}`)
    }
    t.end()
  })
}

void test('default: its tests fail without the switch for sharing, and without shared threads in any rule that opens them', (t) => {
  const policy = parse(readFileSync(policyOf('default'), 'utf8')) as PolicyFile
  t.not(failing(t, 'default', { ...policy, sharing: false }).length, 0, 'without the switch')
  const opening = policy.rules.filter(({ threads }) => threads?.includes('shared') === true)
  t.same(
    opening.map(({ name }) => name),
    ['chat', 'threads', 'history', 'leave', 'langgraph-chat', 'langgraph-threads'],
  )
  for (const rule of opening) {
    const closed = { ...rule, threads: ['own', ...(rule.threads ?? [])].filter((one) => one !== 'shared') }
    const rules = policy.rules.map((one) => (one === rule ? closed : one))
    t.not(failing(t, 'default', { ...policy, rules }).length, 0, `without shared in ${String(rule.name)}`)
  }
  t.end()
})

/** The tests of a shipped policy that fail where the policy is this one. */
function failing(t: Test, name: string, policy: PolicyFile): readonly string[] {
  const { file, folder } = configFile(t, POLICIES[name])
  mkdirSync(join(folder, 'tests'))
  writeFileSync(join(folder, basename(policyOf(name))), stringify(policy))
  const tests = join(folder, 'tests', basename(testsOf(name)))
  writeFileSync(tests, readFileSync(testsOf(name)))
  const prepared = prepare(file, {})
  if (!prepared.ok) throw new Error('the configuration is refused')
  const { config } = prepared.value
  const loaded = loadTests(tests, config, prepared.value.policy)
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults))
  return runTests(loaded.value, config)
    .filter(({ failures }) => failures.length > 0)
    .map((one) => one.name)
}
