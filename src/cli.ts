#!/usr/bin/env node
/** The program. It looks at its Node before anything is imported that an older one could not read. */
import process from 'node:process'
import { setFlagsFromString } from 'node:v8'

// V8 guesses which objects live long from those that its first collections find in use. In a proxy these belong to the requests in
// progress, so the guess is wrong, and it stays: from then on every request occupies memory until a full collection. Some processes
// had it from their start: collections of 14 to 50 ms instead of 2 to 4 ms, and a heap of 200 MB instead of 75 MB.
setFlagsFromString('--no-allocation-site-pretenuring')

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(
    `threadwarden needs Node 22.19 or newer; this is ${process.versions.node}. In a clone, use \`npx node\`: npm ci installs a newer one\n`,
  )
  process.exitCode = 1
} else {
  const { run } = await import('./cli/run.ts')
  process.exitCode = await run(process.argv.slice(2), process)
}
