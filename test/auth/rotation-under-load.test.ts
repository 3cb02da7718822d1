/** A real OpenID provider changes its keys while people are at work: nobody notices, until the old key is taken out. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'tap'
import { startIssuer } from '../../examples/issuer.ts'
import { guarded, PASSED } from '../../testing/support/guarded.ts'
import { ask } from '../../testing/support/raw.ts'
import { until } from '../../testing/support/until.ts'

const REFUSED = 401
const FRESH = 600_001
/** After a fetch there is none for this long. */
const COOL_DOWN = 5001

const kidOf = (token: string): string =>
  (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: string }).kid

void test('a rotation under load fails no request, and ends what was signed with a key that was taken out', async (t) => {
  const running = Date.now
  const moved = { by: 0 }
  Date.now = () => running() + moved.by
  t.teardown(() => void (Date.now = running))
  const issuer = await startIssuer()
  t.teardown(() => issuer.close())
  let keySets = 0
  const onAnswer = (message: unknown): void => {
    const { request } = message as { request: { origin: string; path: string } }
    if (request.origin === issuer.issuer && request.path.endsWith('/jwks')) keySets += 1
  }
  subscribe('undici:request:trailers', onAnswer)
  t.teardown(() => unsubscribe('undici:request:trailers', onAnswer))
  const config = { issuer: issuer.issuer, audiences: [issuer.audience], algorithms: ['RS256'] }
  const { gateway, fate } = await guarded(t, { corp: config })
  const status = async (token: string) => (await ask(gateway.url, { target: '/api/copilotkit/info', token })).status

  const tokens = [await issuer.signIn('alice'), await issuer.signIn('bob')]
  const statuses = new Map<number, number>()
  let going = true
  const worker = async (): Promise<void> => {
    for (let at = 0; going; at += 1) {
      const came = await status(tokens[at % tokens.length] ?? '')
      statuses.set(came, (statuses.get(came) ?? 0) + 1)
    }
  }
  t.equal(await fate(tokens[0] ?? ''), PASSED)
  const load = Promise.all(Array.from({ length: 4 }, worker))
  const more = async (count: number): Promise<void> => {
    const goal = (statuses.get(200) ?? 0) + count
    await until(() => (statuses.get(200) ?? 0) >= goal || statuses.size > 1)
  }

  await more(50)
  for (let turn = 0; turn < 3; turn += 1) {
    issuer.rotate('kept')
    moved.by += COOL_DOWN
    tokens.push(await issuer.signIn('alice'), await issuer.signIn('olga'))
    await more(50)
    // Also when the set is renewed for its age. That has to be over before the next key: the pause begins at its end.
    const before = keySets
    moved.by += FRESH
    await until(() => keySets > before)
    await more(50)
  }
  going = false
  await load
  t.same([...statuses.keys()], [200], 'no request failed')
  t.equal(new Set(tokens.map(kidOf)).size, 4, 'four keys signed')

  issuer.rotate('taken out')
  moved.by += FRESH
  await until(async () => (await status(tokens[0] ?? '')) === REFUSED)
  t.same(new Set(await Promise.all(tokens.map(status))), new Set([REFUSED]))
  moved.by += COOL_DOWN
  t.equal(await fate(await issuer.signIn('bob')), PASSED)
})
