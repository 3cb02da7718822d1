/** The way a request comes does not hold the event loop for long (budget.ts). */
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'tap'
import { startGateways, within } from './budget.ts'

void test(
  'a request that comes in pieces, with many names, or with others does not hold the event loop',
  { timeout: 300_000 },
  async (t) => {
    const { gateways, urls, token } = await startGateways(t)
    const head = `host: gateway\r\nauthorization: Bearer ${token()}\r\ncontent-type: application/json\r\n`
    const target = '/api/copilotkit/agent/default/run'
    const input = '{"threadId":"t1","runId":"r1","messages":[],"tools":[],"context":[],"state":""}'
    const whole = (body: string, more = ''): string =>
      `POST ${target} HTTP/1.1\r\n${head}${more}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
    const deep = input.replace('""', `[${Array.from({ length: 60_000 }, (_, at) => `{"k${at}":1}`).join()}]`)
    const inChunks = input
      .replace('""', `"${'x'.repeat(1_000_000)}"`)
      .replaceAll(/.{1,8}/g, (few) => `${few.length}\r\n${few}\r\n`)
    for (const [name, answers, bytes] of [
      ['a few bytes a chunk', 1, `POST ${target} HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n${inChunks}0\r\n\r\n`],
      ['a head full of names', 1, whole(input, Array.from({ length: 900 }, (_, at) => `x-${at}: a\r\n`).join(''))],
      ['16 requests in a row', 16, whole(input).repeat(16)],
      ['16 large requests in a row', 16, whole(deep).repeat(16)],
      ['a long query', 1, `GET /api/copilotkit/threads?agentId=default&cursor=${'a'.repeat(12_000)} HTTP/1.1\r\n${head}\r\n`],
      ['a query of many names', 1, `GET /api/copilotkit/threads?${'a&'.repeat(6_000)}b HTTP/1.1\r\n${head}\r\n`],
    ] as const) {
      await within(t, gateways, name, () => answered(urls['routes'] ?? '', bytes, answers))
    }
    await within(t, gateways, '16 large requests at once', async () => {
      await Promise.all(Array.from({ length: 16 }, () => answered(urls['routes'] ?? '', whole(deep), 1)))
    })
    const state = (count: number, member: (at: number) => string): string =>
      input.replace('""', `[${Array.from({ length: count }, (_, at) => `{${member(at)}}`).join()}]`)
    for (const [name, body] of [
      ['of many keys', state(1500, (at) => `"k${at}":"${'x'.repeat(30)}"`)],
      ['of escaped keys', state(300, (at) => `"\\u006bey-${at}":"\\u00e9\\n${'x'.repeat(20)}"`)],
    ] as const) {
      await within(t, gateways, `200 small requests that come to their end at once, ${name}`, () =>
        together(urls['routes'] ?? '', whole(body), 200),
      )
    }
  },
)

/** Sends the same request over several connections, of each the last byte when all others have come. */
async function together(url: string, bytes: string, count: number): Promise<void> {
  const { hostname, port } = new URL(url)
  const sockets = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(Number(port), hostname)
      await once(socket, 'connect')
      await new Promise((resolve) => socket.write(bytes.slice(0, -1), resolve))
      return socket
    }),
  )
  // While others are answered one after the other, all that has come is read.
  const other = `GET /api/copilotkit/none HTTP/1.1\r\nhost: gateway\r\n\r\n`
  for (let at = 0; at < 20; at += 1) await answered(url, other, 1)
  const answers = sockets.map((socket) => once(socket, 'data'))
  for (const socket of sockets) socket.write(bytes.slice(-1))
  await Promise.all(answers)
  for (const socket of sockets) socket.destroy()
}

/** Sends bytes over a connection, and waits for so many answers. */
function answered(url: string, bytes: string, answers: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    let text = ''
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece
      // Whatever is answered: what counts is how long it took.
      if (text.split('HTTP/1.1 ').length <= answers) return
      socket.destroy()
      resolve()
    })
    socket.once('error', reject)
    socket.once('end', () => reject(new Error(`closed behind ${text.slice(0, 1000)}`)))
  })
}
