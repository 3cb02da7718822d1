/** Runs the gateway under load and faults for an hour, and judges what came of it. The result is kept as JSON; docs/contributing/soak.md shows it. */
import { runCommand } from '../testing/command.ts'
import { demandsOf } from '../testing/soak/demands.ts'
import { readOptions, USAGE } from '../testing/soak/options.ts'
import { readResult, writePage, writeResult } from '../testing/soak/page.ts'
import { soakReport } from '../testing/soak/report.ts'
import { soak, type ProgressReport } from '../testing/soak/soaking.ts'

const report: ProgressReport = {
  line: (text) => void process.stderr.write(`${text}\n`),
  unexplained: (answer) => void process.stderr.write(`nothing explains this: ${JSON.stringify(answer)}\n`),
}

async function main(): Promise<number> {
  const options = readOptions(process.argv.slice(2))
  if (options === null) {
    process.stdout.write(USAGE)
    return 0
  }
  const { out, page, read, keep, ...wanted } = options
  if (!read) writeResult(out, await soak(wanted, keep, report))
  const result = readResult(out)
  process.stdout.write(`${soakReport(result)}\n`)
  if (page) writePage(result)
  return demandsOf(result).some(({ isMet }) => isMet === false) ? 1 : 0
}

await runCommand(main, USAGE)
