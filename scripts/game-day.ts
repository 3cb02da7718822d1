/**
 * A game day: injects the faults that an operator meets into running gateways, and measures which alert of the shipped rules fires,
 * and after how long. Needs Prometheus (Debian's package `prometheus`).
 */
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { drill } from '../testing/game-day/drill.ts'
import { exercise, type Exercised } from '../testing/game-day/exercise.ts'
import { FAULTS } from '../testing/game-day/faults.ts'
import { runCommand, UsageError } from '../testing/command.ts'

const USAGE = `Injects faults into running gateways, and waits for the alerts of the shipped rules.

  npm run game-day -- --drill [--only TEXT]
  npm run game-day -- [--only TEXT] [--healthy MINUTES] [--patience MINUTES] [--pictures FOLDER]

  --drill     starts gateways with faults in another order, for a person to find out what is wrong, until Ctrl-C
  --only      faults whose name contains this
  --healthy   traffic without a fault at the beginning (default: 6)
  --patience  how long an alert may take (default: 30)
  --pictures  writes pictures of the console there; needs Debian's chromium

Faults: ${FAULTS.map(({ name }) => name).join('; ')}

Exit code: 0 if each fault has its alert and nothing fired before, 1 if not, 2 for wrong usage.
`

const RULES = fileURLToPath(new URL('../deploy/observability/threadwarden.rules.yml', import.meta.url))

function minutes(name: string, text: string): number {
  const value = Number(text)
  if (!(value > 0)) throw new UsageError(`--${name} is a number of minutes`)
  return value * 60_000
}

function rowOf({ fault, fired, before }: Exercised): string {
  const alerts = fired.map(({ alert, severity, seconds }) => `${alert} (${severity}) after ${seconds} s`)
  const first = before.length === 0 ? '' : `fired before the fault: ${before.join(', ')}. `
  return `| ${fault.name} | ${first}${alerts.join(', ') || 'none'} | [${fault.runbook}](../${fault.runbook}) |`
}

const isReported = ({ fault, fired, before }: Exercised): boolean =>
  before.length === 0 && fired.some(({ alert }) => fault.alerts.includes(alert))

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      drill: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
      healthy: { type: 'string', default: '6' },
      patience: { type: 'string', default: '30' },
      pictures: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  const faults = FAULTS.filter(({ name }) => name.includes(values.only))
  if (faults.length === 0) throw new UsageError(`no fault contains ${values.only}`)
  const options = {
    rules: RULES,
    healthy: minutes('healthy', values.healthy),
    patience: minutes('patience', values.patience),
    pictures: values.pictures ?? null,
  }
  const ends: (() => unknown)[] = []
  const scope = { teardown: (end: () => unknown) => void ends.unshift(end) }
  try {
    if (values.drill) {
      const shuffled = faults.map((fault) => ({ fault, at: randomInt(2 ** 32) })).toSorted((one, other) => one.at - other.at)
      const shown = await Promise.all(shuffled.map(({ fault }) => drill(scope, fault)))
      process.stdout.write(shown.map((one, at) => `Gateway ${at + 1}\n${one}\n\n`).join(''))
      await once(process, 'SIGINT')
      return 0
    }
    const done = await Promise.all(
      faults.map(async (fault) => {
        const one = await exercise(scope, fault, options)
        process.stderr.write(`${rowOf(one)}\n  ${one.readyz}\n`)
        return one
      }),
    )
    process.stdout.write(`| Fault | Alert | Runbook |\n| --- | --- | --- |\n${done.map(rowOf).join('\n')}\n`)
    return done.every(isReported) ? 0 : 1
  } finally {
    for (const end of ends) await end()
  }
}

await runCommand(main, USAGE)
