/** `threadwarden diff`: 0 where nothing changes, 1 where something does, with who, what, before and after. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { SHIPPED } from '../../testing/support/policies.ts'
import { run } from './in-process.ts'
import { configFile } from '../../testing/support/program.ts'

const FINANCE = SHIPPED.replace(
  'rules:\n',
  `rules:
  - name: finance-only
    routes: [agent/run, agent/connect, agent/suggest]
    deny: [signed-in]
    agents: [finance]
    unless: { permissions: { any: [finance] } }
`,
)

void test('an agent that is closed but for a permission', async (t) => {
  const { file, folder } = configFile(t)
  const [before, after] = ['old.yaml', 'new.yaml'].map((name) => join(folder, name)) as [string, string]
  writeFileSync(before, SHIPPED)
  writeFileSync(after, FINANCE)
  const same = await run(t, ['diff', '--config', file, before, before])
  t.match(same, {
    code: 0,
    stdout: /^before .*\nafter .*\n\nno difference in \d+ decisions for \d+ kinds of callers\n$/,
    stderr: '',
  })
  const plain = await run(t, ['diff', '--config', file, before, after])
  t.equal(plain.code, 1)
  t.match(
    plain.stdout,
    /\n\nclosed\n {2}routes +POST agent\/run, POST agent\/suggest\n {2}threads +own; shared for writing; unowned; own, deleted\n {2}agents +finance\n {2}callers +a user of corp\n/,
  )
  t.match(
    plain.stdout,
    /^ {2}before +permitted by "chat" \(line \d+\)\n {2}after +refused: 403 not-allowed \(denied-by-rule\) by "finance-only" \(line \d+\)$/m,
  )
  const data = await run(t, ['diff', '--config', file, after, before, '--json'])
  t.equal(data.code, 1)
  const {
    same: isSame,
    differences,
    cut,
  } = JSON.parse(data.stdout) as { same: boolean; cut: unknown[]; differences: { callers: string[] }[] }
  t.same({ isSame, cut }, { isSame: false, cut: [] })
  t.match(differences[0], {
    agents: ['finance'],
    before: { outcome: 'refused', code: 'not-allowed' },
    after: { outcome: 'permitted', rule: { name: 'chat', line: Number } },
  })
  t.notOk(
    differences[0]?.callers.some((caller) => caller.includes('permission finance')),
    'those with the permission notice nothing',
  )
})

void test('a file with a fault is told with its line', async (t) => {
  const { file, folder } = configFile(t)
  const [good, bad] = ['good.yaml', 'bad.yaml'].map((name) => join(folder, name)) as [string, string]
  writeFileSync(good, SHIPPED)
  writeFileSync(bad, SHIPPED.replace('allow: [operator]', 'allow: [signed-in]'))
  const { code, stdout, stderr } = await run(t, ['diff', '--config', file, good, bad])
  t.same({ code, stdout }, { code: 1, stdout: '' })
  t.match(stderr, /^error: .*bad\.yaml:\d+: rules\.\d+\.allow: threads\/clear reaches the threads of all users/)
  const data = await run(t, ['diff', '--config', file, bad, good, '--json'])
  t.match(JSON.parse(data.stdout), { faults: [{ file: bad }] })
})

void test('two files, no more and no less', async (t) => {
  const { file } = configFile(t)
  for (const files of [[], ['a.yaml'], ['a.yaml', 'b.yaml', 'c.yaml']]) {
    t.match(await run(t, ['diff', '--config', file, ...files]), {
      code: 2,
      stdout: '',
      stderr: /name two policy files: OLD and NEW/,
    })
  }
})
