/** The how-tos on operation: their commands run as printed, on a gateway with users and threads. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { AUDIENCE, ISSUER, JWK } from '../../testing/support/tokens.ts'
import { until } from '../../testing/support/until.ts'
import { runBlocks } from './commands.ts'
import packageJson from '../../package.json' with { type: 'json' }
import { anchors, blocks, page, rows, code, ROOT } from './markdown.ts'
import { operating } from './operating.ts'

interface Rule {
  readonly alert?: string
  readonly expr: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

function ruleList(): readonly Rule[] {
  const text = readFileSync(join(ROOT, 'deploy/observability/threadwarden.rules.yml'), 'utf8')
  return (parse(text) as { groups: readonly { rules: readonly Rule[] }[] }).groups.flatMap(({ rules }) => rules)
}

const PRINTED_ID = '3e7c0a52-6a0f-4f0e-9d4c-1f4b5f6f7a10'

void test('health and readiness', async (t) => {
  const { options } = await operating(t)
  await runBlocks(t, 'docs/how-to/operate/health-and-readiness.md', options)
})

void test('why was a request refused', async (t) => {
  const { options, run, logged } = await operating(t, { audit: { to: 'file', file: './audit.jsonl' } })
  t.equal((await run('alice', 'team-plan')).status, 200)
  const refused = await run('bob', 'team-plan')
  t.equal(refused.status, 403)
  const id = refused.headers.get('x-request-id') ?? ''
  await logged(id)
  await runBlocks(t, 'docs/how-to/operate/why-was-a-request-refused.md', {
    ...options,
    replace: { [PRINTED_ID]: id },
    varying: [[/"ms":\d+/g, '"ms":<ms>']],
    exits: { '--claims claims.json': 3 },
  })
})

void test('support bundle', async (t) => {
  const { options } = await operating(t)
  await runBlocks(t, 'docs/how-to/operate/support-bundle.md', options)
})

void test('alerts', async (t) => {
  const { options, run } = await operating(t)
  await run('alice', 'team-plan')
  await runBlocks(t, 'docs/how-to/operate/alerts.md', options)
})

void test('reload', async (t) => {
  const { options, logged } = await operating(t)
  await runBlocks(t, 'docs/how-to/operate/reload.md', options)
  await logged('"cause":"SIGHUP"')
})

void test('observe mode', async (t) => {
  const { options, run, logged } = await operating(t)
  await run('alice', 'team-plan')
  await runBlocks(t, 'docs/how-to/operate/observe-mode.md', {
    ...options,
    after: async ({ info }) => {
      if (info !== 'yaml') return
      await logged('enforcement: observe (report-only)')
      t.equal((await run('bob', 'team-plan')).status, 200)
      await logged('"wouldRefuse":"thread-foreign"')
    },
  }).then(({ ran }) => t.match(ran[0]?.output, /wouldRefuse/))
})

void test('shut down and upgrade', async (t) => {
  const { options } = await operating(t)
  await runBlocks(t, 'docs/how-to/operate/shutdown-and-upgrade.md', options)
})

void test('audit', async (t) => {
  const { options, run } = await operating(t, { audit: { to: 'file', file: './data/audit.jsonl' } })
  await run('alice', 'team-plan')
  await run('bob', 'team-plan')
  const file = join(options.folder, 'data/audit.jsonl')
  await until(() => readFileSync(file, 'utf8').includes('"thread-foreign"'))
  const { ran } = await runBlocks(t, 'docs/how-to/operate/audit.md', options)
  t.match(ran[0]?.output, /"thread-foreign"/)
})

void test('revoke access', async (t) => {
  const { options, run } = await operating(t)
  const { ran } = await runBlocks(t, 'docs/how-to/operate/revoke-access.md', options)
  t.match(ran[0]?.output, /5f0c1d2e/)
  // Gateways look twice a second.
  await until(async () => (await run('alice', 'team-plan')).status === 200)
})

void test('rotate keys', async (t) => {
  const { options } = await operating(t)
  await runBlocks(t, 'docs/how-to/operate/rotate-keys.md', options)
  t.match(readFileSync(join(options.folder, 'assertion-new.pem'), 'utf8'), /^-----BEGIN PRIVATE KEY-----/)
})

void test('incident', async (t) => {
  const { options, run } = await operating(t)
  await run('alice', 'team-plan')
  const exits = { 'threadwarden doctor': 1 }
  const { ran } = await runBlocks(t, 'docs/how-to/operate/incident.md', { ...options, exits })
  t.match(ran[1]?.output, /threadwarden_decisions_total\{route="agent\/run",reason="permitted"\} 1/)
})

void test('the store is down', async (t) => {
  const { options, run } = await operating(t)
  await run('alice', 'team-plan')
  const { ran } = await runBlocks(t, 'docs/how-to/operate/store-is-down.md', options)
  t.match(ran[0]?.output, /"status":"ready"/)
  t.match(ran[1]?.output, /1/)
})

void test('the keys of an issuer cannot be fetched', async (t) => {
  const issuer = await startKeyServer(t)
  issuer.keys(JWK)
  const corp = { issuer: ISSUER, audiences: [AUDIENCE], algorithms: ['RS256'], jwksUri: `${issuer.url}/jwks` }
  const { options, run } = await operating(t, { authentication: { issuers: { corp } } })
  t.equal((await run('alice', 'team-plan')).status, 200)
  issuer.answers.set('/jwks', { status: 404 })
  const { ran } = await runBlocks(t, 'docs/how-to/operate/keys-cannot-be-fetched.md', {
    ...options,
    exits: { 'threadwarden doctor': 1 },
  })
  // The time of the fetch may follow a second later.
  t.match(ran[0]?.output, /^threadwarden_issuer_keys_stale\{issuer="corp"\} 0/m)
  t.match(ran[1]?.output, /jwks answered 404/)
})

void test('a token has leaked', async (t) => {
  const { options, run } = await operating(t)
  await run('alice', 'team-plan')
  const { ran } = await runBlocks(t, 'docs/how-to/operate/leaked-token.md', options)
  t.match(ran[2]?.output, /"thread":"team-plan","principal":"corp:alice"/)
  // Gateways look twice a second.
  await until(async () => (await run('alice', 'team-plan')).status === 200)
})

void test('back up and restore', async (t) => {
  const { options } = await operating(t)
  await runBlocks(t, 'docs/how-to/operate/backup-and-restore.md', options)
})

void test('data requests', async (t) => {
  const { options, run } = await operating(t)
  await run('alice', 'team-plan')
  await runBlocks(t, 'docs/how-to/operate/data-requests.md', options)
  t.match(JSON.parse(readFileSync(join(options.folder, 'alice.json'), 'utf8')), { threads: [{ thread: 'team-plan' }] })
})

void test('change owners', async (t) => {
  const { options, run } = await operating(t)
  await run('alice', 'team-plan')
  const { ran } = await runBlocks(t, 'docs/how-to/operate/change-owners.md', options)
  t.match(ran[0]?.output, /corp:alice/)
})

void test('migrate', async (t) => {
  const { options, run, logged } = await operating(t, {
    enforcement: 'observe',
    ownership: { store: 'sqlite:./data/ownership.db', unknownThread: 'claim' },
  })
  await run('alice', 'drafts')
  for (const user of ['alice', 'bob']) t.equal((await run(user, 'team-plan')).status, 200)
  const { folder } = options
  const old = parse(readFileSync(join(folder, 'threadwarden.yaml'), 'utf8')) as { ownership: object }
  const next = { ...old, ownership: { ...old.ownership, store: 'sqlite:./new.db' } }
  for (const [name, tree] of Object.entries({ old, new: next })) writeFileSync(join(folder, `${name}.yaml`), JSON.stringify(tree))
  const { ran } = await runBlocks(t, 'docs/how-to/operate/migrate.md', {
    ...options,
    exits: {
      'threads owner team-plan': 1,
      'threadwarden doctor': 1,
      // The configuration of this test has no LangGraph server.
      '--scope graphs': 2,
      '--from-upstream': 1,
      // team-plan is a conflict until it is assigned.
      '--from-observed --config threadwarden.yaml\nthreadwarden threads stats': 0,
      '--from-observed': 1,
    },
    after: async ({ code: text, info, section }) => {
      if (text.includes('"wouldRefuse"')) await run('bob', 'bob-2')
      if (info !== 'yaml' || !section.startsWith('4')) return
      await logged('"cause":"file"')
    },
  })
  const [report] = ran.filter(({ command }) => command.includes('wouldRefuse'))
  t.match(report?.output, /"thread-foreign"/)
  t.notMatch(report?.output, /"thread-unknown"/, 'new chats are not in the report')
  t.equal((await run('bob', 'bob-2')).status, 200)
  t.equal((await run('alice', 'bob-2')).status, 403)
  t.equal((await run('bob', 'old-orphan')).status, 403)
})

void test('doctor', async (t) => {
  const { options, url } = await operating(t)
  await runBlocks(t, 'docs/how-to/operate/doctor.md', {
    ...options,
    replace: { 'https://chat.example.com': url },
    exits: { '--url https': 1, '--run default\n': 1, 'doctor --config threadwarden.yaml\n': 1 },
  })
})

void test('the alert rules and the table use metrics that exist', (t) => {
  const known = rows(page('docs/reference/metrics.md').text).map(([name]) => code(name))
  const monitor = page('docs/how-to/operate/monitor.md')
  const [scrape] = blocks(monitor, 'yaml prometheus').map((text) => parse(text) as Record<string, unknown>)
  t.ok(scrape?.['scrape_configs'])
  const isKnown = (name: string): boolean => known.includes(name.replace(/(?<=_seconds)_(?:bucket|count|sum)$/, ''))
  for (const { expr } of ruleList()) for (const [name] of expr.matchAll(/threadwarden_\w+/g)) t.ok(isKnown(name), name)
  for (const [cell = ''] of monitor.text.matchAll(/`(?!process_)[a-z_]+_(?:total|stale|streams|generation|successful)`/g)) {
    t.ok(known.includes(`threadwarden_${cell.slice(1, -1)}`), cell)
  }
  t.end()
})

void test('each alert has a section that says what to do, and a line in the table', (t) => {
  const alerts = ruleList().flatMap(({ alert, labels, annotations }) =>
    alert === undefined ? [] : [{ alert, severity: labels?.['severity'], runbook: annotations?.['runbook_url'] }],
  )
  t.ok(alerts.length >= 19)
  const runbook = page('docs/how-to/operate/alerts.md')
  const url = `${packageJson.repository.url.replace(/^git\+(.*)\.git$/, '$1')}/blob/main/${runbook.name}`
  for (const { alert, severity, runbook: to } of alerts) {
    t.equal(to, `${url}#${alert.toLowerCase()}`)
    t.ok(anchors(runbook).includes(alert.toLowerCase()), alert)
    t.ok(severity === 'critical' || severity === 'warning', alert)
  }
  const sections = [...runbook.text.matchAll(/^## (\w+)\n\n- \*\*Means\*\*: .+\n- \*\*Look\*\*: .+\n- \*\*Do\*\*: .+$/gm)]
  t.same(sections.map(([, name]) => name).toSorted(), alerts.map(({ alert }) => alert).toSorted())
  const inTable = rows(page('docs/how-to/operate/monitor.md').text).flatMap(([names = '', severities = '']) => {
    const cells = severities.split(', ')
    return Array.from(names.matchAll(/`(Threadwarden\w+)`/g), ([, name], at) => [name, cells[at]])
  })
  t.same(inTable.toSorted(), alerts.map(({ alert, severity }) => [alert, severity]).toSorted())
  t.end()
})
