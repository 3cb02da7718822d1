/** Places the files that the gateway writes and the configuration does not place: in THREADWARDEN_DATA, otherwise in ./data. */
import { join } from 'node:path'
import { valueAt } from '../core/json/pointer.ts'
import type { Config } from './schema.ts'

/** The container image sets it: the folder of its configuration is read-only. */
export const DATA_FOLDER = 'THREADWARDEN_DATA'

export function placeDataFiles(config: Config, written: unknown, environment: NodeJS.ProcessEnv): Config {
  const folder = environment[DATA_FOLDER] ?? ''
  if (folder === '') return config
  const { ownership, audit } = config
  return {
    ...config,
    ownership: isStorePlaced(written) ? ownership : { ...ownership, store: `sqlite:${join(folder, 'ownership.db')}` },
    audit: valueAt(written, '/audit/file') !== undefined ? audit : { ...audit, file: join(folder, 'audit.jsonl') },
  }
}

/** False where the environment decides which store it is. */
export function isStorePlaced(written: unknown): boolean {
  return valueAt(written, '/ownership/store') !== undefined
}
