/** Formats test results as JUnit XML for build servers. */
import type { TestResult } from './run-tests.ts'

export interface FileResult {
  readonly file: string
  readonly results: readonly TestResult[]
  readonly faults: readonly string[]
}

export function junitOf(files: readonly FileResult[]): string {
  const suites = files.map(({ file, results, faults }) => {
    const failed = results.filter(({ failures }) => failures.length > 0).length
    const errors = faults.length > 0 ? 1 : 0
    return [
      `  <testsuite name="${escaped(file)}" tests="${results.length + errors}" failures="${failed}" errors="${errors}">`,
      ...(errors === 0
        ? []
        : [
            testCase('the file can be read', file, [
              `      <error message="${escaped(faults[0] ?? '')}">${escaped(faults.join('\n'))}</error>`,
            ]),
          ]),
      ...results.map(({ name, failures }) =>
        testCase(
          name,
          file,
          failures.map((one) => `      <failure message="${escaped(one)}">${escaped(one)}</failure>`),
        ),
      ),
      '  </testsuite>',
    ].join('\n')
  })
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites>', ...suites, '</testsuites>', ''].join('\n')
}

function testCase(name: string, file: string, inner: readonly string[]): string {
  const head = `    <testcase name="${escaped(name)}" classname="${escaped(file)}"`
  return inner.length === 0 ? `${head}/>` : [`${head}>`, ...inner, '    </testcase>'].join('\n')
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\n': '&#10;',
}

/** XML 1.0 §2.2 cannot represent control characters, lone surrogates and two more characters. */
function escaped(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\ufffe\uffff]/g, '\ufffd')
    .replaceAll(/[&<>"'\n]/g, (one) => ENTITIES[one] ?? one)
}
