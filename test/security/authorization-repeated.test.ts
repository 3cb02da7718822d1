/**
 * Two credentials in one request: node keeps the first Authorization line and drops the others without a word, other servers
 * keep the last or join them with a comma (RFC 9110 §5.3 allows neither for this field), so that the one that is checked need
 * not be the one that is used. Envoy's rules matched such joined values against single ones (CVE-2026-26308). The gateway
 * looks at the raw lines, and refuses more than one, or one with a comma in it, before it reads either.
 */
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'
import { makeSigner } from '../../testing/support/tokens.ts'

const TARGET = '/api/copilotkit/info'

/** More than one credential; `a` and `b` are two good tokens. */
const REPEATED: Readonly<Record<string, (a: string, b: string) => readonly string[]>> = {
  'two good ones': (a, b) => [`Authorization: Bearer ${a}`, `Authorization: Bearer ${b}`],
  'the same twice': (a) => [`Authorization: Bearer ${a}`, `Authorization: Bearer ${a}`],
  'in two cases': (a, b) => [`authorization: Bearer ${a}`, `AUTHORIZATION: Bearer ${b}`],
  'in mixed case': (a, b) => [`aUTHORIZATION: Bearer ${a}`, `Authorization: Bearer ${b}`],
  'a good one and nonsense': (a) => [`Authorization: Bearer ${a}`, 'Authorization: Bearer nonsense'],
  'nonsense and a good one': (a) => ['Authorization: Bearer nonsense', `Authorization: Bearer ${a}`],
  'a good one and an empty one': (a) => [`Authorization: Bearer ${a}`, 'Authorization:'],
  'an empty one and a good one': (a) => ['Authorization:', `Authorization: Bearer ${a}`],
  'two empty ones': () => ['Authorization:', 'Authorization: '],
  'two schemes': (a) => ['Authorization: Basic eDp5', `Authorization: Bearer ${a}`],
  'two schemes, the other way round': (a) => [`Authorization: Bearer ${a}`, 'Authorization: Basic eDp5'],
  'three of them': (a, b) => [`Authorization: Bearer ${a}`, `Authorization: Bearer ${b}`, `Authorization: Bearer ${a}`],
  'far apart': (a, b) => [
    `Authorization: Bearer ${a}`,
    ...Array.from({ length: 190 }, (_, at) => `X-${at}: 1`),
    `Authorization: Bearer ${b}`,
  ],
  'a list': (a, b) => [`Authorization: Bearer ${a}, Bearer ${b}`],
  'a list without spaces': (a, b) => [`Authorization: Bearer ${a},Bearer ${b}`],
  'a list of one scheme': (a, b) => [`Authorization: Bearer ${a}, ${b}`],
  'a list that begins with nothing': (a) => [`Authorization: , Bearer ${a}`],
  'a list that ends with nothing': (a) => [`Authorization: Bearer ${a},`],
  'a list of schemes': (a) => [`Authorization: Basic eDp5, Bearer ${a}`],
  'a list of nothing': () => ['Authorization: ,'],
  'a list within quotes': (a, b) => [`Authorization: Bearer "${a}, ${b}"`],
  'parameters behind it': (a) => [`Authorization: Bearer ${a}, realm="x"`],
}

/** Lines that hold two, but are no lines to the HTTP parser. */
const UNREADABLE: Readonly<Record<string, (a: string, b: string) => readonly string[]>> = {
  'a folded line': (a, b) => [`Authorization: Bearer ${a}`, ` Bearer ${b}`],
  'a bare line feed within': (a, b) => [`Authorization: Bearer ${a}\nAuthorization: Bearer ${b}`],
  'a bare carriage return within': (a, b) => [`Authorization: Bearer ${a}\rAuthorization: Bearer ${b}`],
  'a null byte within': (a, b) => [`Authorization: Bearer ${a}\u0000Bearer ${b}`],
  'a space before the colon': (a, b) => [`Authorization: Bearer ${a}`, `Authorization : Bearer ${b}`],
  'a tab before the colon': (a, b) => [`Authorization: Bearer ${a}`, `Authorization\t: Bearer ${b}`],
}

for (const mode of ['required', 'optional', 'off'] as const) {
  void testFirstPair(`in mode ${mode} more than one credential is refused, and nothing arrives`, async (t, pair) => {
    const signer = makeSigner()
    t.teardown(() => signer.remove())
    const config = { authentication: { ...signer.authentication, mode } }
    const { gateway, upstream, alice, bob } = await gated(t, undefined, { pair, signer, config })
    for (const [name, lines] of [...Object.entries(REPEATED), ...Object.entries(UNREADABLE)]) {
      for (const order of [lines(alice, bob), lines(bob, alice)]) {
        const answer = await gateway.ask({ target: TARGET, lines: order })
        t.match(answer, { status: 400, body: '"code":"header-malformed"' }, name)
      }
    }
    t.equal(upstream.beginnings(), 0)
    t.notOk(
      gateway.lines.some((line) => 'principal' in line),
      'nobody was found out',
    )

    t.equal((await gateway.ask({ target: TARGET, token: alice })).status, 200, 'one is fine')
    t.same(
      upstream.requests.map(({ headers }) => headers.get('authorization')),
      [[`Bearer ${alice}`]],
    )
  })
}

void testFirstPair('names that are nearly Authorization are no second one: they end here', async (t, pair) => {
  const { gateway, upstream, alice, bob } = await gated(t, undefined, { pair })
  for (const name of [
    'Proxy-Authorization',
    'X-Authorization',
    'X-Forwarded-Authorization',
    'Authorization_',
    'Authorisation',
    'WWW-Authorization',
  ]) {
    // oxfmt-ignore
    t.equal((await gateway.ask({ target: TARGET, lines: [`${name}: Bearer ${bob}`] })).status, 401, name)
    const both = await gateway.ask({ target: TARGET, token: alice, lines: [`${name}: Bearer ${bob}`] })
    t.equal(both.status, 200, name)
  }
  t.equal(upstream.requests.length, 6)
  for (const request of upstream.requests) {
    t.same(request.headers.get('authorization'), [`Bearer ${alice}`])
    t.notMatch(request.rawHeaders.join('\n'), bob)
  }
})
