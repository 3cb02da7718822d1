/** A process of its own with a store: it opens it, and does the calls that it is sent, one after the other. */
import type { Store } from '../../src/store/port/store.ts'
import { openSqliteStore } from '../../src/store/sqlite/store.ts'
import type { Answer, Call } from './store-process.ts'

const [file = ''] = process.argv.slice(2)

// Node ignores it, and so writes beyond a limit fail; what runs the tests has a handler that ends the process.
process.on('SIGXFSZ', () => {})

let store: Store | undefined
let last = open()

process.on('message', (call: Call) => {
  last = last.then(() => answer(call))
})

async function open(): Promise<void> {
  try {
    store = await openSqliteStore(file)
    send({ value: 'open' })
  } catch (error) {
    send(failed(error))
  }
}

async function answer({ method, args }: Call): Promise<void> {
  try {
    // The message names the method.
    const methods = store as unknown as Record<string, (...args: readonly unknown[]) => Promise<unknown>>
    send({ value: (await methods[method]?.(...args)) ?? null })
  } catch (error) {
    send(failed(error))
  }
}

function failed(error: unknown): Answer {
  return error instanceof Error ? { name: error.name, message: error.message } : { name: 'none', message: String(error) }
}

function send(value: Answer): void {
  process.send?.(value)
}
