/** Which tests `npm test` runs, and which only `npm run test:all` (docs/contributing/testing.md). */
import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { EXTENT } from '../../testing/support/sample.ts'

/** The longest that one file may take, in milliseconds: files of long suites share the machine with others as large as they are. */
export function fileLimit(extent: typeof EXTENT): number {
  return extent === 'sample' ? 300_000 : 600_000
}

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface Suite {
  readonly name: string
  /** Globs, from the root of the repository. */
  readonly files: readonly string[]
  /** The files of the suite that `npm test` runs. */
  readonly sample: readonly string[]
}

/** What takes longer than a developer waits for. Where a part of it is quick, `npm test` runs that. */
export const LONG_SUITES: readonly Suite[] = [
  { name: 'benchmarks', files: ['test/bench/*.test.ts'], sample: ['test/bench/framing.test.ts', 'test/bench/plot.test.ts'] },
  {
    name: 'soak',
    files: ['test/soak/*.test.ts'],
    sample: ['test/soak/event-reader.test.ts', 'test/soak/flatness.test.ts', 'test/soak/judging.test.ts'],
  },
  {
    name: 'races',
    files: ['test/races/*.test.ts'],
    sample: ['test/races/linearizable.test.ts', 'test/races/verdict.test.ts', 'test/races/first-runs.test.ts'],
  },
  {
    name: 'fuzz',
    files: ['test/fuzz/*.test.ts'],
    sample: [
      'test/fuzz/corpora.test.ts',
      'test/fuzz/fixed-cases.test.ts',
      'test/fuzz/langgraph-cases.test.ts',
      'test/fuzz/langgraph.test.ts',
    ],
  },
  { name: 'consistency', files: ['test/consistency/*.test.ts', 'test/security/list-exact.test.ts'], sample: [] },
  {
    name: 'interleavings',
    files: ['test/interleavings/*.test.ts'],
    sample: ['test/interleavings/few.test.ts'],
  },
  { name: 'replicas', files: ['test/replicas/*.test.ts'], sample: ['test/replicas/claims.test.ts'] },
  {
    name: 'workers',
    files: ['test/workers/*.test.ts'],
    sample: ['test/workers/revocation.test.ts'],
  },
  { name: 'streams', files: ['test/streams/*.test.ts'], sample: ['test/streams/slow-reader.test.ts'] },
  { name: 'event loop', files: ['test/event-loop/*.test.ts'], sample: [] },
  {
    name: 'migrations',
    files: ['test/store/postgres-*.test.ts', 'test/postgres/*.test.ts', 'test/support/postgres.test.ts'],
    sample: ['test/postgres/migrating.test.ts'],
  },
  {
    name: 'command line',
    files: [
      'test/cli/rolling-restart.test.ts',
      'test/cli/little-memory.test.ts',
      'test/cli/new-objects.test.ts',
      'test/cli/old-node.test.ts',
      'test/cli/full-disk.test.ts',
      'test/cli/init-runtimes.test.ts',
    ],
    sample: [],
  },
  {
    name: 'package',
    files: ['test/package/*.test.ts'],
    sample: ['test/package/contents.test.ts', 'test/package/copied.test.ts'],
  },
  {
    name: 'whole systems',
    files: ['test/e2e/*.test.ts', 'test/doctor/live-run.test.ts', 'test/doctor/quiet-stream.test.ts'],
    sample: ['test/e2e/four-combinations.test.ts', 'test/e2e/in-process.test.ts'],
  },
  {
    name: 'services',
    files: ['test/systemd/*.test.ts', 'test/proxies/*.test.ts', 'test/compose/*.test.ts'],
    sample: [],
  },
  { name: 'runtime versions', files: ['test/contract/versions/*.test.ts'], sample: [] },
  { name: 'release', files: ['test/release/whole.test.ts'], sample: [] },
  { name: 'manifests', files: ['test/deploy/*.test.ts'], sample: ['test/deploy/copies.test.ts'] },
  { name: 'browser', files: ['test/browser/*.browser.ts'], sample: [] },
]

/** Where `npm test` leaves out pairs of transports, which the suite `pairs` runs. */
export function pairFiles(): readonly string[] {
  const samples = sampleFiles()
  return quickThatCall('testEachPair|testEachUpstream|testFirstPair|testUnbridged|stackEachPair').filter(
    (file) => !samples.includes(file),
  )
}

/** Where `npm test` leaves out other cases: the suite `samples` runs these files whole. */
export function sampleFiles(): readonly string[] {
  return quickThatCall('sampleOf|runsOf')
}

function quickThatCall(functions: string): readonly string[] {
  const call = new RegExp(`\\b(?:${functions})\\(`)
  return quickFiles().filter((file) => call.test(readFileSync(`${ROOT}/${file}`, 'utf8')))
}

export function quickFiles(): readonly string[] {
  const long = new Set(LONG_SUITES.flatMap(longFiles))
  return files(['test/**/*.test.ts']).filter((file) => !long.has(file))
}

/** Without what `npm test` has run of it. */
export function longFiles({ files: globs, sample }: Suite): readonly string[] {
  return files(globs).filter((file) => !sample.includes(file))
}

function files(globs: readonly string[]): readonly string[] {
  return [...new Set(globSync([...globs], { cwd: ROOT }))].toSorted()
}
