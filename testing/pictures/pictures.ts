/** The pictures of the README that are drawn from the demo and from package.json. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { badge } from './badge.ts'
import { beforeAfterPicture } from './before-after.ts'
import { exchangesOf, linesOf } from './recording.ts'
import { terminalPicture } from './terminal.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** A file, and its text. */
export type Picture = readonly [file: string, text: string]

/** The request that the picture of the problem shows. */
const SHOWN = { who: 'bob', method: 'GET', path: '/threads/alice-1/messages' } as const

/**
 * The pictures of a recorded demo.
 * @throws if the demo does not have the request that is shown without the gateway and with it
 */
export function demoPictures(output: string): readonly Picture[] {
  const [before, after] = exchangesOf(output).filter(
    ({ who, method, path }) => who === SHOWN.who && method === SHOWN.method && path === SHOWN.path,
  )
  if (before === undefined || after === undefined) throw new Error('the demo does not show the request twice')
  const [, scenes = ''] = output.split(/^(?= +caller)/m)
  const lines = linesOf(`$ npm run demo\n\n${scenes}`)
  return [
    ['docs/images/demo.svg', terminalPicture('npm run demo', lines)],
    ['docs/images/before-after.svg', beforeAfterPicture(before, after)],
  ]
}

/** The badges, from package.json and from the runtimes of the contract tests. */
export function badges(): readonly Picture[] {
  const { license, engines } = json('package.json') as { license: string; engines: { node: string } }
  const current = json('examples/package.json') as Dependencies
  const older = json('examples/runtime-1.54/package.json') as Dependencies
  const versions = [older.dependencies['@copilotkitnext/runtime'], current.dependencies['@copilotkit/runtime']]
  return [
    ['docs/images/badges/licence.svg', badge('licence', license)],
    ['docs/images/badges/node.svg', badge('node', engines.node.replace('>=', '≥ '))],
    ['docs/images/badges/runtime.svg', badge('tested with CopilotKit runtime', versions.join(' and '))],
    ['docs/images/badges/status.svg', badge('status', 'not yet released')],
  ]
}

interface Dependencies {
  readonly dependencies: Readonly<Record<string, string>>
}

function json(file: string): unknown {
  return JSON.parse(readFileSync(`${ROOT}${file}`, 'utf8'))
}
