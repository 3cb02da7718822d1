#!/usr/bin/env node
/** The program. It looks at its Node before anything is imported that an older one could not read. */
import process from 'node:process'
import { setV8Options } from './gateway/v8-options.ts'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `threadwarden needs Node 22.19 or newer; this is ${process.versions.node}. In a clone, use \`npx node\`: npm ci installs a newer one\n`,
  )
  process.exitCode = 1
} else {
  setV8Options()
  const { run } = await import('./cli/run.ts')
  process.exitCode = await run(process.argv.slice(2), process)
}
