/** Runs the mutation tester on a part and reads what it found. */
import { spawn } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Part } from './parts.ts'

/** The folder of the repository. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const PACKAGES = join(ROOT, 'scripts/mutants/tester/node_modules/@stryker-mutator')
const REPORTS = join(ROOT, 'scripts/mutants/tester/reports')

/** A change to the source, and what became of it. */
export interface Mutant {
  readonly file: string
  /** Counted from 1. */
  readonly line: number
  /** The source line that it begins on, without the blanks around it. */
  readonly code: string
  readonly kind: string
  /** What stands there instead, in one line. */
  readonly replacement: string
  /** True if no test failed. A mutant that does not end, or does not even load, was noticed. */
  readonly survived: boolean
}

interface Report {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly ReportedMutant[] }>>
  readonly testFiles: Readonly<Record<string, { readonly tests: readonly { readonly id: string; readonly name: string }[] }>>
}

interface ReportedMutant {
  readonly mutatorName: string
  readonly replacement?: string
  readonly status: string
  readonly killedBy?: readonly string[]
  readonly location: { readonly start: { readonly line: number } }
}

/**
 * Runs a part. The tester works on a copy of the tree and tells its progress on standard output.
 * @param name the part's, for its report
 * @param concurrency how many tests run side by side
 * @param files only these of the part; what its last report says of others stays. None: all
 * @throws Error if the tests fail without any change, or the tester does
 */
export async function runPart(name: string, part: Part, concurrency: number, files: readonly string[]): Promise<void> {
  mkdirSync(REPORTS, { recursive: true })
  const report = files.length === 0 ? reportFile(name) : join(REPORTS, 'some-files.json')
  const config = join(REPORTS, `${name}.config.json`)
  writeFileSync(
    config,
    JSON.stringify({
      plugins: [join(PACKAGES, 'tap-runner/dist/src/index.js')],
      testRunner: 'tap',
      tap: { testFiles: part.tests, nodeArgs: ['-r', '{{hookFile}}', '{{testFile}}'], forceBail: true },
      coverageAnalysis: 'perTest',
      mutate: files.length === 0 ? part.mutate : files,
      ignorePatterns: [
        'dist',
        'scripts/mutants/tester',
        'examples/langgraph',
        'examples/next',
        'examples/runtime-1.54',
        'examples/agui-1.0',
        'examples/runtimes',
        '.tap',
      ],
      reporters: ['json', 'progress-append-only'],
      jsonReporter: { fileName: report },
      tempDirName: join(ROOT, 'scripts/mutants/tester/sandbox'),
      checkers: [],
      // The sources run as they are: types are stripped, not checked.
      disableTypeChecks: false,
      concurrency,
      timeoutMS: 20_000,
    }),
  )
  const tester = spawn(process.execPath, [join(PACKAGES, 'core/bin/stryker.js'), 'run', config], { cwd: ROOT, stdio: 'inherit' })
  const code = await new Promise((resolve) => tester.once('exit', resolve))
  if (code !== 0) throw new Error(`the mutation tester ended with ${String(code)}`)
  if (report === reportFile(name)) return
  const [whole, some] = [readReport(reportFile(name)), readReport(report)]
  writeFileSync(reportFile(name), JSON.stringify({ ...whole, files: { ...whole.files, ...some.files } }))
}

/** Reads a report, with the names of test files in place of their numbers, which are of one run alone. */
function readReport(file: string): Report {
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report
  const tests = Object.values(report.testFiles).flatMap((one) => one.tests)
  const names = new Map(tests.map(({ id, name }) => [id, name]))
  const files = Object.entries(report.files).map(([path, { source, mutants }]) => {
    const named = mutants.map((mutant) => ({ ...mutant, killedBy: (mutant.killedBy ?? []).map((id) => names.get(id) ?? id) }))
    return [path, { source, mutants: named }]
  })
  return { ...report, files: Object.fromEntries(files) as Report['files'] }
}

function reportFile(name: string): string {
  return join(REPORTS, `${name}.json`)
}

/** The mutants of a part's last run. */
export function readMutants(name: string): readonly Mutant[] {
  const report = readReport(reportFile(name))
  return Object.entries(report.files).flatMap(([file, { source, mutants }]) => {
    const lines = source.split('\n')
    return mutants.map(({ mutatorName, replacement = '', status, location }) => ({
      file,
      line: location.start.line,
      code: (lines[location.start.line - 1] ?? '').trim(),
      kind: mutatorName,
      replacement: replacement.replaceAll(/\s+/g, ' ').trim(),
      survived: status === 'Survived' || status === 'NoCoverage',
    }))
  })
}
