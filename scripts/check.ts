/** Runs the checks of `npm run check`, as many at once as there are cores: what each says is shown when it is over. */
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { runCommand } from '../testing/command.ts'

const USAGE = `What is checked without running a test: npm run check [-- --build | --pages]

  --build  builds the gateway as well, as \`npm test\` needs it
  --pages  builds the gateway, the chat and the documentation site, and checks the pages only, as \`npm run test:all\` needs it

Each check is a command of its own: npm run check:lint (types and lint), and so on.
`

/** The longest first, so that the last one does not run alone for long. */
const CHECKS = [
  'check:lint',
  'check:path',
  'check:imports',
  'check:schemas',
  'check:truth',
  'check:writing',
  'check:cli',
  'check:metrics',
  'check:keys',
  'check:langgraph',
  'check:contract',
  'check:format',
]

/** They use one core each, and the site takes as long as the others together. */
const PAGES = ['docs:build', 'build:web', 'build', 'check:web']

async function run(name: string): Promise<boolean> {
  const began = performance.now()
  const child = spawn('npm', ['run', '--silent', name], { stdio: ['ignore', 'pipe', 'pipe'] })
  const code = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)])
  const passed = (await code) === 0
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  process.stdout.write(`${passed ? 'ok    ' : 'failed'} ${name} ${seconds} s\n${passed ? '' : `${out}${err}\n`}`)
  return passed
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      build: { type: 'boolean', default: false },
      pages: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(USAGE)
    return 0
  }
  if (values.build)
    process.stdout.write('npm test takes about 8 minutes on 2 cores. It checks and builds first, and then runs the tests.\n')
  const waiting = values.pages ? [...PAGES] : [...CHECKS, ...(values.build ? ['build'] : [])]
  const lane = async (): Promise<boolean> => {
    let passed = true
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) passed = (await run(name)) && passed
    return passed
  }
  const lanes = await Promise.all(Array.from({ length: availableParallelism() }, lane))
  return lanes.every(Boolean) ? 0 : 1
}

await runCommand(main, USAGE)
