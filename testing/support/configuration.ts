/** Configurations as an operator would write them, loaded from a file in a folder of their own. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadConfig, type LoadedConfig } from '../../src/config/load.ts'
import type { Outcome } from '../../src/document/document.ts'
import { faultLine, type Fault } from '../../src/document/fault.ts'
import { Sources } from '../../src/document/sources.ts'
import { makeFolder } from './gateway.ts'

type Tree = Record<string, unknown>

/** Values by dotted path; `undefined` takes the key out. */
export type Changes = Readonly<Record<string, unknown>>

/** The least that is valid, with one issuer. */
const LEAST = {
  version: 1,
  upstream: { url: 'http://127.0.0.1:4000', basePath: '/api/copilotkit' },
  authentication: { issuers: { corp: { issuer: 'https://login.example.com/', audiences: ['chat'], algorithms: ['RS256'] } } },
  ownership: { unknownThread: 'claim' },
}

/** The least valid configuration with some values changed. */
export function configuration(changes: Changes = {}): Tree {
  const tree = structuredClone(LEAST) as Tree
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split('.')
    const last = keys.pop() ?? ''
    let inner = tree
    for (const key of keys) inner = (inner[key] ??= {}) as Tree
    if (value === undefined) Reflect.deleteProperty(inner, last)
    else inner[last] = value
  }
  return tree
}

/** What is around the file. */
export interface Surroundings {
  readonly environment?: NodeJS.ProcessEnv
  /** Files beside it, by name. */
  readonly files?: Readonly<Record<string, string>>
}

/** Loads a text, or the least valid configuration with some values changed. */
export function load(content: string | Changes, { environment = {}, files = {} }: Surroundings = {}): Outcome<LoadedConfig> {
  const { folder, remove } = makeFolder()
  try {
    const file = join(folder, 'threadwarden.yaml')
    writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(configuration(content), null, 2))
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    return loadConfig(file, environment, new Sources())
  } finally {
    remove()
  }
}

/** Loads what has to be valid. */
export function accepted(content: string | Changes, surroundings?: Surroundings): LoadedConfig {
  const outcome = load(content, surroundings)
  if (!outcome.ok) throw new Error(`refused:\n${outcome.faults.map(faultLine).join('\n')}`)
  return outcome.value
}

/** The faults of a configuration; none if it is valid. */
export function faultsIn(content: string | Changes, surroundings?: Surroundings): readonly Fault[] {
  const outcome = load(content, surroundings)
  return outcome.ok ? [] : outcome.faults
}

/** Only where the faults are: what each is called by tools. */
export function faultPaths(content: string | Changes, surroundings?: Surroundings): readonly string[] {
  return faultsIn(content, surroundings).map((fault) => fault.path)
}
