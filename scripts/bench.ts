/** Measures what the gateway costs, part by part. Results are kept as JSON, and pages of the documentation show them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { makeProgress } from '../src/cli/with-progress.ts'
import { readOptions, USAGE } from '../testing/bench/options.ts'
import {
  figurePages,
  keptParts,
  PAGE,
  partOf,
  plotFile,
  readPlot,
  readTable,
  USUAL_PARTS,
  withTables,
  writeResult,
} from '../testing/bench/page.ts'
import type { PartName } from '../testing/bench/parts.ts'
import { runCommand } from '../testing/command.ts'

async function main(): Promise<number> {
  const options = readOptions()
  if (options === null) {
    process.stdout.write(USAGE)
    return 0
  }
  const progress = makeProgress(process.stderr)
  const tables = new Map<PartName, string>()
  mkdirSync(options.out, { recursive: true })
  const parts = options.parts ?? (options.read ? keptParts(options.out) : USUAL_PARTS)
  for (const name of parts) {
    if (!options.read) writeResult(options.out, name, await partOf(name).run({ ...options, progress }))
    tables.set(name, readTable(options.out, name))
    process.stdout.write(`${name}\n\n${tables.get(name) ?? ''}\n\n`)
  }
  if (!options.page) return 0
  writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), tables))
  for (const [file, text] of figurePages(options.out)) writeFileSync(file, text)
  for (const name of parts) {
    const plot = readPlot(options.out, name)
    if (plot !== null) writeFileSync(plotFile(name), plot)
  }
  return 0
}

await runCommand(main, USAGE)
