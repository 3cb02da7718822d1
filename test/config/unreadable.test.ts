/** A file that is no configuration at all is a fault with a place, never a stack trace: `serve` prints nothing else. */
import { test } from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { Sources } from '../../src/document/sources.ts'
import { accepted, configuration, faultsIn } from '../../testing/support/configuration.ts'

void test('a file that is not there says so', (t) => {
  const outcome = loadConfig('/nowhere/threadwarden.yaml', {}, new Sources())
  t.match(outcome, {
    ok: false,
    faults: [
      {
        file: '/nowhere/threadwarden.yaml',
        path: '',
        message: 'does not exist',
        hint: 'check the path',
      },
    ],
  })
  t.match(loadConfig('/', {}, new Sources()), { ok: false, faults: [{ file: '/', message: 'is a folder' }] })
  t.end()
})

void test('every syntax error is reported, with its line', (t) => {
  t.match(faultsIn('version: 1\nversion: 1\nlisten: {port: 1\n'), [
    { line: 2, path: '', message: 'is not valid YAML: Map keys must be unique (version)', hint: 'write it once' },
    { line: 4, path: '', message: /^is not valid YAML: / },
  ])
  t.match(faultsIn('version: 1\n---\nversion: 1\n'), [{ message: /^is not valid YAML: / }], 'two documents in one file')
  t.match(faultsIn('version: 1\n---\nversion: 1\n'), [{ hint: 'remove the line ---' }])
  t.end()
})

void test('a slip of the indentation is one fault, with what to do', (t) => {
  const text = 'version: 1\nrules:\n- routes: [info]\n  allow: [signed-in]\n  - routes: [transcribe]\n    allow: [signed-in]\n'
  const faults = faultsIn(text)
  t.equal(new Set(faults.map(({ line }) => line)).size, faults.length, 'one a line')
  t.ok(faults.length > 0)
  for (const { message, hint } of faults) {
    t.match(message, /^is not valid YAML: /)
    t.match(hint, /^check the indentation: items of one list start in the same column, and tabs are not allowed$/)
  }
  t.end()
})

void test('an empty file is empty, and not without each of the keys', (t) => {
  for (const text of ['', '\n', '# nothing\n'])
    t.match(faultsIn(text), [{ path: '', message: 'is empty', hint: 'begin it with version: 1' }], JSON.stringify(text))
  t.equal(faultsIn('').length, 1)
  t.end()
})

void test('an alias without an anchor is a fault', (t) => {
  t.match(faultsIn('version: 1\nlisten:\n  host: *anywhere\n'), [{ path: '', message: /^is not valid YAML: / }])
  t.end()
})

void test('a few lines that unfold to millions are a fault', (t) => {
  const level = (name: string, of: string): string => `${name}: &${name} [${Array(20).fill(of).join(', ')}]`
  const text = [level('a', 'x'), level('b', '*a'), level('c', '*b'), level('d', '*c'), level('e', '*d')].join('\n')
  t.match(faultsIn(text), [{ path: '', message: /^is not valid YAML: / }])
  t.end()
})

void test('JSON is as good as YAML', (t) => {
  t.equal(accepted(JSON.stringify(configuration())).config.version, 1)
  t.end()
})
