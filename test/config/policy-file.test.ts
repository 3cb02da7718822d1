/** `policy: builtin:NAME`: a shipped policy without a path, wherever the configuration is. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { BUILTIN_POLICIES, DEFAULT_POLICY, policyFile } from '../../src/config/policy-file.ts'
import { prepare } from '../../src/snapshot/load.ts'
import { configFile } from '../../testing/support/program.ts'
import { run } from '../cli/in-process.ts'

const SHIPPED = fileURLToPath(new URL('../../policies', import.meta.url))

void test('every shipped policy has a name', (t) => {
  t.same(
    BUILTIN_POLICIES,
    globSync('*.yaml', { cwd: SHIPPED })
      .map((file) => basename(file, '.yaml'))
      .toSorted(),
  )
  t.same(DEFAULT_POLICY, { path: join(SHIPPED, 'default.yaml'), isBuiltin: true })
  t.same(policyFile('a.yaml', '/etc/gateway'), { path: '/etc/gateway/a.yaml', isBuiltin: false })
  t.end()
})

void test('a configuration anywhere names one, for policy and shadowPolicy, and neither is watched', (t) => {
  const { file } = configFile(t, { policy: 'builtin:single-team', shadowPolicy: 'builtin:read-only-support' })
  const prepared = prepare(file, {})
  if (!prepared.ok) throw new Error(JSON.stringify(prepared.faults))
  const { config, policy, shadow } = prepared.value
  t.equal(policy.file, join(SHIPPED, 'single-team.yaml'))
  t.equal(shadow?.file, join(SHIPPED, 'read-only-support.yaml'))
  t.same([config.policy, config.shadowPolicy], [policy.file, shadow?.file])
  t.notOk([...prepared.states.keys()].some((watched) => watched.startsWith(SHIPPED)))
  t.end()
})

void test('a policy by its path is watched, also a shipped one', (t) => {
  const path = join(SHIPPED, 'default.yaml')
  const { file } = configFile(t, { policy: path })
  t.ok([...prepare(file, {}).states.keys()].includes(path))
  t.end()
})

void test('a name that does not exist is an error, and the near one is suggested', async (t) => {
  for (const [name, hint] of [
    ['single-teams', /did you mean "single-team"/],
    ['../config/threadwarden', /builtin policies: default, managed-platform/],
    ['', /builtin policies: default/],
  ] as const) {
    const { file } = configFile(t, { policy: `builtin:${name}` })
    const { code, stderr } = await run(t, ['validate', '--config', file])
    t.equal(code, 1)
    t.match(stderr, /policy: names no builtin policy/)
    t.match(stderr, hint)
  }
})

void test('diff and policy tests take the same names', async (t) => {
  const { file, folder } = configFile(t)
  t.match(await run(t, ['diff', '--config', file, 'builtin:default', join(SHIPPED, 'default.yaml')]), { code: 0 })
  t.match(await run(t, ['diff', '--config', file, 'builtin:default', 'builtin:defalt']), {
    code: 2,
    stderr: /builtin:defalt names no builtin policy: did you mean "default"/,
  })
  const tests = readFileSync(join(SHIPPED, 'tests/default.test.yaml'), 'utf8').replace('../default.yaml', 'builtin:default')
  const copy = join(folder, 'default.test.yaml')
  writeFileSync(copy, tests)
  t.match(await run(t, ['test', '--config', file, copy]), { code: 0 })
})
