/** What the tested runtimes take and give, as they were last asked: `npm run contract -- --record`. */
import { readFileSync, writeFileSync } from 'node:fs'
import type { RuntimeContract } from './facts.ts'

const FILE = new URL('contracts.json', import.meta.url)

export function readRecorded(): readonly RuntimeContract[] {
  return JSON.parse(readFileSync(FILE, 'utf8')) as readonly RuntimeContract[]
}

export function textOf(contracts: readonly RuntimeContract[]): string {
  return `${JSON.stringify(contracts, null, 2)}\n`
}

export function writeRecorded(contracts: readonly RuntimeContract[]): void {
  writeFileSync(FILE, textOf(contracts))
}
