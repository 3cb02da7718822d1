/**
 * Runs test files one after another in this process: what a file needs of Node, tap and the gateway is loaded and compiled once.
 * The runner (run.ts) names the files.
 */
import { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'
import { t as root, type Test } from 'tap'
import { enter } from './current-file.ts'
import { EXTENT } from '../../testing/support/sample.ts'
import { fileLimit, ROOT } from './suites.ts'

export interface FileResult {
  readonly file: string
  readonly passed: boolean
  readonly seconds: number
  /** Lines of TAP. */
  readonly said: readonly string[]
}

/** A line of JSON for each result goes out, a line with the name of a file comes in; neither is in the way of what tests do. */
const channel = new Socket({ fd: 3 })

/** The test that runs, of those within this one. */
function innermost(one: Test): Test {
  const [running] = one.activeSubtests
  return running === undefined ? one : innermost(running as Test)
}

let file: Test | undefined

/** An error that comes when its file is over ends the process: nothing tells which of the files it belongs to. */
function caught(error: unknown, event: 'uncaughtException' | 'unhandledRejection'): void {
  if (file !== undefined) return void innermost(file).hookDomain.onerror(error, event)
  console.error(error)
  process.exit(1)
}
process.on('uncaughtException', (error) => caught(error, 'uncaughtException'))
process.on('unhandledRejection', (error) => caught(error, 'unhandledRejection'))

let said = ''
root.setTimeout(0)
root.pipe(new Writable({ write: (text: Buffer, _, done) => ((said += text.toString()), done()) }))
void root.test('files', { timeout: 0 }, async (files) => {
  for await (const name of createInterface({ input: channel })) {
    const path = pathToFileURL(join(ROOT, name)).href
    const began = performance.now()
    const result = await files.test(name, { timeout: fileLimit(EXTENT) }, async (one) => {
      file = one
      enter(one)
      await import(path)
    })
    file = undefined
    const seconds = (performance.now() - began) / 1000
    const passed = result?.ok === true && result.count > 0
    channel.write(
      `${JSON.stringify({ file: name, passed, seconds, said: passed ? [] : said.split('\n') } satisfies FileResult)}\n`,
    )
    said = ''
  }
})
