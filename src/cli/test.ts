/** `threadwarden test`: tests a policy against its expected decisions. */
import { writeFileSync } from 'node:fs'
import { faultLine, inOrder } from '../document/fault.ts'
import type { Prepared } from '../snapshot/load.ts'
import { junitOf, type FileResult } from '../tools/simulate/junit.ts'
import { runTests } from '../tools/simulate/run-tests.ts'
import { loadTests } from '../tools/simulate/test-file.ts'
import { CONFIG, defineCommand, EXIT, jsonFlag, UsageError, value } from './command.ts'
import { complain, harmless, paintFor, printData, printLines, type Paint, type Terminal } from './terminal.ts'
import { loadConfig } from './input-files.ts'

export const command = defineCommand({
  about: `Runs policy tests: YAML files with principals, threads and the expected answers to their requests
(docs/how-to/authorize/try-a-policy.md). A failure names the expected decision, the actual one and the rule that decided. It starts
nothing and fetches nothing.`,
  positionals: { 'TEST…': 'test files' },
  options: {
    config: CONFIG,
    junit: value('FILE', 'also writes the results to this file as JUnit XML'),
    json: jsonFlag('{"passed", "failed", "files"}'),
  },
  exitCodes: { 0: 'all tests pass', 1: 'a test fails, or a file is invalid' },
  examples: ['threadwarden test policy.test.yaml', 'threadwarden test policy.test.yaml --junit results.xml'],

  run(values, terminal, positionals) {
    if (positionals.length === 0) throw new UsageError('name a test file')
    const prepared = loadConfig(terminal, values)
    const files = positionals.map((file) => resultOf(file, prepared))
    const results = files.flatMap((one) => one.results)
    const failed = results.filter(({ failures }) => failures.length > 0).length
    const passed = results.length - failed
    if (values.json) printData(terminal, { passed, failed, files })
    else printLines(terminal, text(files, passed, failed, paintFor(terminal.stdout, terminal.env)))
    const written = values.junit === undefined || isWritten(terminal, values.junit, junitOf(files))
    return written && failed === 0 && files.every(({ faults }) => faults.length === 0) ? EXIT.fine : EXIT.failure
  },
})

function resultOf(file: string, { config, policy }: Prepared): FileResult {
  const tests = loadTests(file, config, policy)
  if (!tests.ok) return { file, results: [], faults: inOrder(tests.faults).map(faultLine) }
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

function isWritten(terminal: Terminal, file: string, xml: string): boolean {
  try {
    writeFileSync(file, xml)
    return true
  } catch {
    complain(terminal, `error: --junit ${file} cannot be written: check the folder and its permissions`)
    return false
  }
}
