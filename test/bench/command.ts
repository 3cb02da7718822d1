/** The benchmark as a command. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../docs/markdown.ts'

/** Runs it. */
export function bench(...args: readonly string[]) {
  return benchWith({}, ...args)
}

/** Runs it with something else in the environment. */
export function benchWith(env: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const options = { encoding: 'utf8', env: { ...process.env, ...env } } as const
  return spawnSync(process.execPath, [join(ROOT, 'scripts/bench.ts'), ...args], options)
}

/** What it has left behind where it was given a folder for what is temporary (`TMPDIR`). */
export function scratchIn(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => name.startsWith('threadwarden-bench-'))
}

/**
 * Makes what looks like another checkout, with something in place of the gateway.
 * @param folder where it goes
 * @param onRequest the body of a listener of node:http's: `message`, `response`
 * @returns what `--also` takes
 */
export function otherCheckout(folder: string, onRequest: string): string {
  mkdirSync(join(folder, 'dist'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "version": "9.9.9" }')
  const program = `
import { createServer } from 'node:http'
const server = createServer((message, response) => {
  if (message.url === '/readyz') return response.end()
  message.resume()
  message.on('end', () => { ${onRequest} })
})
if (process.argv[2] === 'serve') {
  server.listen(0, '127.0.0.1', () => {
    const url = 'http://127.0.0.1:' + server.address().port
    console.log(JSON.stringify({ msg: 'listening', url, health: url }))
  })
}
`
  writeFileSync(join(folder, 'dist/cli.js'), program)
  return `--also=other=${folder}`
}
