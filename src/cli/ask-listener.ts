/** Asks a listener of the gateway for operators: without a proxy of the environment, because it is on loopback or in the same network. */
import { request } from 'node:http'
import { UsageError } from './command.ts'

interface Limits {
  readonly timeoutMs: number
  readonly mostBytes: number
  readonly headers?: Readonly<Record<string, string>>
}

export interface ListenerAnswer {
  readonly status: number
  readonly text: string
}

/** @throws Error whose message is the code of the failure, or says that there is no answer in time */
export function askListener(url: string, { timeoutMs, mostBytes, headers = {} }: Limits): Promise<ListenerAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const failed = (error: Error): void => {
      const code = 'code' in error ? String(error.code) : error.name
      reject(new Error(signal.aborted ? 'no answer in time' : code))
    }
    const asking = request(url, { signal, agent: false, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('error', failed)
      response.on('data', (chunk: string) => {
        text += chunk
        if (text.length > mostBytes) response.destroy(Object.assign(new Error('too large'), { code: 'TOO_LARGE' }))
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    asking.on('error', failed).end()
  })
}

/**
 * The origin in the value of --url.
 * @throws UsageError unless it is an http address without user or password
 */
export function givenOrigin(text: string, listener: 'health' | 'admin', usualPort: number): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url?.protocol !== 'http:' || url.username !== '' || url.password !== '')
    throw new UsageError(`--url must be the address of the ${listener} listener, such as http://127.0.0.1:${usualPort}`)
  return url.origin
}
