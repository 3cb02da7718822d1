/**
 * A service as Kubernetes has it: new connections go to one of the gateways behind it, in turn, and connections that are
 * kept open stay with theirs. And people who ask it for one thing after the other.
 */
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import type { Test } from 'tap'
import { runInput } from './client.ts'
import { until } from './until.ts'

/** What became of the requests: how often each status came, or what a connection failed with. */
export type Told = Readonly<Record<string, number>>

/** The service under load. */
export interface Service {
  /** From now on new connections go to these, as `http://host:port`. */
  behind(...urls: string[]): void
  /** Waits for so many answers more. */
  answered(count: number): Promise<void>
  /** Lets everybody come to the end of what they ask. */
  stop(): Promise<Told>
}

/** Begins the load: each of some people runs, reads and asks for their threads, over connections that are kept open. */
export function loadService(t: Pick<Test, 'teardown'>, url: string, tokens: readonly string[]): Service {
  let urls = [url]
  let turn = 0
  let stopped = false
  let answers = 0
  const told: Record<string, number> = {}
  // Each in turn, so that none is idle for long.
  const agent = new Agent({ keepAlive: true, scheduling: 'fifo' })
  agent.createConnection = () => {
    const { hostname, port } = new URL(urls[turn++ % urls.length]!)
    return connect(Number(port), hostname)
  }
  const ask = (method: string, path: string, token: string, body?: object): Promise<string> =>
    new Promise((resolve) => {
      const headers = { authorization: `Bearer ${token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
      const asked = request({ agent, host: 'service', method, path: `/api/copilotkit${path}`, headers }, (answer) => {
        answer.on('error', () => resolve('cut'))
        answer.on('end', () => resolve(String(answer.statusCode)))
        answer.resume()
      })
      asked.on('error', (error: Error & { readonly code?: string }) => resolve(error.code ?? error.message))
      asked.end(body === undefined ? undefined : JSON.stringify(body))
    })
  const note = async (asked: Promise<string>): Promise<void> => {
    const result = await asked
    told[result] = (told[result] ?? 0) + 1
    answers += 1
  }
  const person = async (token: string): Promise<void> => {
    while (!stopped) {
      const thread = crypto.randomUUID()
      await note(ask('POST', '/agent/default/run', token, runInput(thread, 'x'.repeat(20_000))))
      await note(ask('GET', `/threads/${thread}/messages`, token))
      await note(ask('GET', '/info', token))
    }
  }
  const people = tokens.map(person)
  const stop = async (): Promise<Told> => {
    stopped = true
    await Promise.all(people)
    agent.destroy()
    return told
  }
  t.teardown(stop)
  return {
    behind: (...next) => void (urls = next),
    answered: async (count) => {
      const most = answers + count
      await until(() => answers >= most)
    },
    stop,
  }
}
