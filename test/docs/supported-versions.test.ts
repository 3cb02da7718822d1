/** docs/reference/supported-versions.md names the versions that are installed for the tests, and those that the doctor knows. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { TESTED_RUNTIMES } from '../../src/core/route/runtime-version.ts'
import { page, ROOT, rows, section } from './markdown.ts'

const PAGE = page('docs/reference/supported-versions.md')

const installed = (folder: string, name: string): string => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, folder, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly version: string } | undefined>>
  }
  return packages[`node_modules/${name}`]?.version ?? 'none'
}

/** Each package of the two tables, with the lockfile that it is in. */
const PACKAGES: readonly (readonly [name: string, folder: string])[] = [
  ['@copilotkit/runtime', 'examples'],
  ['@copilotkitnext/runtime', 'examples/runtime-1.54'],
  ['@copilotkit/core', 'examples'],
  ['@copilotkit/react-core', 'examples/web'],
  ['@ag-ui/client', 'examples'],
  ['@ag-ui/encoder', 'examples'],
  ['@ag-ui/client', 'examples/agui-1.0'],
  ['@ag-ui/encoder', 'examples/agui-1.0'],
  ['@langchain/langgraph-api', 'examples/langgraph'],
  ['@langchain/langgraph-sdk', 'examples/web'],
  ['oidc-provider', 'examples'],
]

void test('the versions of the page are those in the lockfiles', (t) => {
  const table = rows(section(PAGE, 'Runtimes').split('\n### ')[0] ?? '')
  for (const [name, folder] of PACKAGES) {
    const row = table.find(([first = '']) => first.includes(`\`${name}\``))
    t.ok(row?.slice(0, 2).join(' ').includes(installed(folder, name)), `${name} ${installed(folder, name)}`)
  }
  t.equal(table.length, PACKAGES.length - 3, 'clients and encoders of AG-UI are one row')
  t.end()
})

void test('the oldest and the newest tested version are those of the page', (t) => {
  const runtimes = PACKAGES.slice(0, 2).map(([name, folder]) => installed(folder, name))
  t.same([TESTED_RUNTIMES.at(-1), TESTED_RUNTIMES[0]], runtimes)
  t.end()
})
