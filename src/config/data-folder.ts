/** Places the files that the gateway writes and the configuration does not place: in THREADWARDEN_DATA, otherwise in ./data. */
import { join } from 'node:path'
import { valueAt } from '../core/json/pointer.ts'
import type { Config } from './schema.ts'

/** The container image sets it: the folder of its configuration is read-only. */
const VARIABLE = 'THREADWARDEN_DATA'

export function placeDataFiles(config: Config, written: unknown, environment: NodeJS.ProcessEnv): Config {
  const folder = environment[VARIABLE] ?? ''
  if (folder === '') return config
  const { ownership, audit } = config
  const isPlaced = (pointer: string): boolean => valueAt(written, pointer) !== undefined
  return {
    ...config,
    ownership: isPlaced('/ownership/store') ? ownership : { ...ownership, store: `sqlite:${join(folder, 'ownership.db')}` },
    audit: isPlaced('/audit/file') ? audit : { ...audit, file: join(folder, 'audit.jsonl') },
  }
}
