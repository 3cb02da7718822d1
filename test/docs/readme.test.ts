/** The README is short, and its facts are those of the packages and of the kept measurements. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { page, ROOT } from './markdown.ts'

const README = page('README.md').text

const json = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'))

interface Manifest {
  readonly engines: { readonly node: string }
  readonly version: string
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
}

const MANIFEST = json('package.json') as Manifest

void test('it has at most 150 lines and one diagram', (t) => {
  t.ok(README.split('\n').length <= 151)
  t.equal(README.match(/```mermaid/g)?.length, 1)
  t.end()
})

void test('its commands, versions and the state of the release are those of the packages', (t) => {
  for (const [, name = ''] of README.matchAll(/npm run ([\w:]+)/g)) t.ok(Object.hasOwn(MANIFEST.scripts, name), name)
  const isReleased = !page('CHANGELOG.md').text.includes(`## [${MANIFEST.version}] - unreleased`)
  t.equal(README.includes('Nothing is published yet'), !isReleased)
  t.match(README, `Version ${MANIFEST.version} is not yet released`)
  t.match(README, `needs Node ${MANIFEST.engines.node.replace('>=', '')} or newer`)
  const { dependencies } = json('examples/package.json') as Manifest
  t.match(README, `\`@copilotkit/runtime\` ${dependencies['@copilotkit/runtime']}`)
  const older = json('examples/runtime-1.54/package.json') as Manifest
  t.match(README, `\`@copilotkitnext/runtime\` ${older.dependencies['@copilotkitnext/runtime']}`)
  t.ok(existsSync(join(ROOT, 'Dockerfile')))
  t.end()
})

interface Measured {
  readonly load?: string
  readonly row: string
  readonly cpu: number
  readonly p50: number
  readonly memoryEach: number
  readonly against: { readonly median: number }
}

void test('what it says of the performance is in the kept results', (t) => {
  const requests = (json('testing/bench/results/requests.json') as { measured: Measured[] }).measured
  const streams = (json('testing/bench/results/streams.json') as { streams: number; measured: Measured[] }).measured
  const of = (from: readonly Measured[], row: string, load?: string): Measured =>
    from.find((one) => one.row === row && (load === undefined || one.load === load))!
  const list = of(requests, 'gateway', 'list')
  t.match(README, `${(list.cpu / 1000).toFixed(1)} ms of CPU, ${Math.round(list.against.median)} times as much`)
  const nginx = of(requests, 'nginx', 'get').cpu / of(requests, 'gateway', 'get').cpu
  t.ok(nginx > 0.2 && nginx < 0.3, 'a quarter')
  for (const figure of ['p50', 'cpu'] as const) {
    t.ok(of(streams, 'gateway')[figure] / of(streams, 'http-proxy')[figure] < 1.1, `${figure}: no more`)
  }
  const memory = ['gateway', 'http-proxy'].map((row) => Math.round(of(streams, row).memoryEach / 1024))
  t.match(README, `A stream takes ${memory.join(' KiB of memory instead of ')}.`)
  t.end()
})
