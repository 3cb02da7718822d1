/** `threadwarden test`: tests a policy against its expected decisions. */
import { writeFileSync } from 'node:fs'
import { faultLine } from '../document/fault.ts'
import type { Prepared } from '../snapshot/load.ts'
import { junitOf, type FileResult } from '../tools/simulate/junit.ts'
import { runTests } from '../tools/simulate/run-tests.ts'
import { loadTests } from '../tools/simulate/test-file.ts'
import { complain, EXIT, printData, printLines, readArguments, UsageError, type Command } from './command.ts'
import { loaded } from './input-files.ts'
import { harmless, paintFor, type Paint } from './terminal.ts'

export const test: Command = {
  summary: 'holds a policy against test files',
  help: `threadwarden test --config FILE TEST… [--junit FILE] [--json]

Runs test files: YAML with people, threads and what has to come of their requests (docs/trying.md). Whatever fails is told with
what was expected, what came, and the rule that decided. Nothing is started and nothing is fetched.

  --config FILE  the configuration (YAML or JSON): its issuers and mode, and its policy where a test file names none
  TEST…          test files
  --junit FILE   writes the results there as JUnit XML, too
  --json         prints {"passed", "failed", "files"} on stdout

Exit codes: 0 all pass, 1 a test fails or a file is invalid, 2 wrong usage.`,

  run(args) {
    const { values, positionals } = readArguments(args, {
      config: { type: 'string' },
      junit: { type: 'string' },
      json: { type: 'boolean' },
    })
    if (positionals.length === 0) throw new UsageError('name a test file')
    const json = values.json === true
    const prepared = loaded(values.config, json)
    if (prepared === null) return Promise.resolve(EXIT.failure)
    const files = positionals.map((file) => resultOf(file, prepared))
    const results = files.flatMap((one) => one.results)
    const failed = results.filter(({ failures }) => failures.length > 0).length
    const passed = results.length - failed
    if (json) printData({ passed, failed, files })
    else printLines(text(files, passed, failed, paintFor(process.stdout, process.env)))
    const written = values.junit === undefined || isWritten(values.junit, junitOf(files))
    return Promise.resolve(written && failed === 0 && files.every(({ faults }) => faults.length === 0) ? EXIT.fine : EXIT.failure)
  },
}

function resultOf(file: string, { config, policy }: Prepared): FileResult {
  const tests = loadTests(file, config, policy)
  if (!tests.ok) return { file, results: [], faults: tests.faults.map(faultLine) }
  return { file, results: runTests(tests.value, config), faults: [] }
}

function text(files: readonly FileResult[], passed: number, failed: number, paint: Paint): string {
  const invalid = files.filter(({ faults }) => faults.length > 0).length
  return [
    ...files.flatMap(({ file, results, faults }) => [
      paint('bold', harmless(file)),
      ...faults.map((fault) => `  ${paint('red', 'error')}  ${harmless(fault)}`),
      ...results.flatMap(({ name, line, failures }) => [
        `  ${failures.length === 0 ? paint('green', 'ok') : paint('red', 'not ok')}  ${harmless(name)}${failures.length === 0 || line === undefined ? '' : ` (line ${line})`}`,
        ...failures.map((one) => `          ${harmless(one)}`),
      ]),
    ]),
    `${passed} passed, ${failed} failed${invalid === 0 ? '' : `, ${invalid} of ${files.length} files invalid`}`,
  ].join('\n')
}

function isWritten(file: string, xml: string): boolean {
  try {
    writeFileSync(file, xml)
    return true
  } catch {
    complain(`error: --junit ${file} cannot be written`)
    return false
  }
}
