/**
 * A target that the gateway reads in one way and the runtime in another: dot segments (Oathkeeper GHSA-p224-6x5r-fjpm, Envoy
 * CVE-2019-9901), a fragment (oauth2-proxy GHSA-pxq7-h93f-9jrg, Envoy CVE-2021-32779), a doubled slash taken for a host
 * (opa-envoy-plugin CVE-2026-26205), encoded separators (Envoy CVE-2021-29492), path parameters (Envoy CVE-2026-73511), no
 * leading slash (gRPC-Go CVE-2026-33186). The runtime resolves whatever it gets as a WHATWG URL, which folds most of these.
 */
import { gated } from '../../testing/support/gated.ts'
import { testFirstPair } from '../../testing/support/pairs.ts'

const BASE = '/api/copilotkit'
const CLEAR = `${BASE}/threads/clear`
const MALFORMED = { body: '"code":"target-malformed"' }

/** What of these targets can stand in an envelope. */
const belowBase = (target: string): boolean => /^\/api\/copilotkit[/\\%]./.test(target)

/** What the WHATWG parser, and so the runtime, makes `/threads/clear` of; the gateway's own reading of each is another. */
const FOLDED_INTO_CLEAR = [
  `${CLEAR}#`,
  `${CLEAR}#x`,
  `${CLEAR}#/messages`,
  `${CLEAR}?#/messages`,
  `${CLEAR}/.`,
  `${BASE}/./threads/clear`,
  `${BASE}/threads/./clear`,
  `${BASE}/x/../threads/clear`,
  `${BASE}/threads/t1/messages/../../clear`,
  `${BASE}/threads/t1/../clear`,
  `/x/..${CLEAR}`,
  `/..${CLEAR}`,
  `/./${CLEAR.slice(1)}`,
  `${BASE}/%2e/threads/clear`,
  `${BASE}/threads/x/%2e%2e/clear`,
  `${BASE}/threads/x/%2E%2E/clear`,
  `${BASE}/threads/x/.%2e/clear`,
  `${BASE}/threads/x/%2E./clear`,
  `${BASE}/threads\\clear`,
  `${BASE}\\threads\\clear`,
  `/api\\copilotkit/threads/clear`,
  `${BASE}/x/..\\threads/clear`,
  `${BASE}/x\\../threads/clear`,
  `${BASE}/x\\%2e%2e\\threads/clear`,
  `//other.example${CLEAR}`,
  `//other.example:80${CLEAR}`,
  `//user:secret@other.example${CLEAR}`,
  `//[::1]${CLEAR}`,
  `///other.example${CLEAR}`,
  `/\\other.example${CLEAR}`,
  `http://other.example${CLEAR}`,
  `HTTP://gateway.example${CLEAR}`,
  `https://gateway.example${CLEAR}`,
  `http://gateway.example:80${CLEAR}#x`,
  `ws://other.example${CLEAR}`,
]

/** What other routers, or a second round of decoding, would make another target of. */
const READ_OTHERWISE: Readonly<Record<string, readonly string[]>> = {
  'an encoded separator': [
    `${BASE}/threads%2fclear`,
    `${BASE}/threads%2Fclear`,
    `${BASE}%2Fthreads/clear`,
    `/api%2fcopilotkit/threads/clear`,
    `${BASE}/threads%5cclear`,
    `${BASE}/threads%5Cclear`,
    `${BASE}/x%2f..%2fthreads/clear`,
    `${BASE}/threads/..%2Fthreads/clear`,
    `${BASE}/threads/a%2Fb/messages`,
    `${BASE}/threads/t1%2Fmessages`,
  ],
  'encoding within encoding': [
    `${BASE}/threads%252fclear`,
    `${BASE}/threads%25252fclear`,
    `${BASE}/%252e%252e/threads/clear`,
    `${BASE}/threads/t1%2525/messages`,
    `${BASE}/threads/%2563lear/messages`,
  ],
  'encoding of what needs none': [
    `${BASE}/%74hreads/clear`,
    `${BASE}/threads/%63lear`,
    `${BASE}/threads/clea%72`,
    `${BASE}/%49nfo`,
    `/%61pi/copilotkit/threads/clear`,
    `${BASE}/threads/%741/messages`,
    `${BASE}/threads/t1/%6dessages`,
    `${BASE}/threads/t%2D1/messages`,
    `${BASE}/threads/a%3ab/messages`,
  ],
  'encoding of nothing': [
    `${BASE}/threads/%`,
    `${BASE}/threads/%c`,
    `${BASE}/threads/%zzclear`,
    `${BASE}/threads/%u0063lear`,
    `${BASE}/threads/%c0%ae%c0%ae/clear`,
    `${BASE}/threads/%e0%80%af/clear`,
    `${BASE}/threads/%ed%a0%80/messages`,
    `${BASE}/threads/%ff/messages`,
    `${BASE}/threads/%f8%80%80%80%af/messages`,
  ],
  'a control': [
    `${BASE}/threads/clear%00`,
    `${BASE}/threads/clear%00/messages`,
    `${BASE}/threads/clear%0a`,
    `${BASE}/threads/clear%0d%0aX-A:%201`,
    `${BASE}/threads/t1%09/messages`,
    `${BASE}/threads/%7f/messages`,
    `${BASE}/threads/t1%1b/messages`,
  ],
  'a segment of nothing': [
    `/${CLEAR}`,
    `//${CLEAR}`,
    `${BASE}//threads/clear`,
    `${BASE}/threads//clear`,
    `${BASE}/threads///clear`,
    `${CLEAR}/`,
    `${CLEAR}//`,
    `${BASE}/`,
    `${BASE}/info/`,
    `${BASE}/threads//messages`,
    '//',
  ],
  'path parameters': [
    `${CLEAR};`,
    `${CLEAR};x=1`,
    `${BASE}/threads;x=1/clear`,
    `${BASE}/x/..;/threads/clear`,
    `${BASE}/..;/threads/clear`,
    `${BASE}/;/threads/clear`,
    `${BASE}/threads/t1;jsessionid=1/messages`,
    `${BASE}/info;/threads/clear`,
  ],
  'characters that no path has': [
    `${BASE}/threads/{t1}/messages`,
    `${BASE}/threads/"t1"/messages`,
    `${BASE}/threads/<t1>/messages`,
    `${BASE}/threads/a|b/messages`,
    `${BASE}/threads/a^b/messages`,
    `${BASE}/threads/\`a\`/messages`,
    `${BASE}/threads/a@b/messages`,
    `${BASE}/threads/a=b/messages`,
    `${BASE}/threads/a,b/messages`,
    `${BASE}/threads/a&b/messages`,
    `${BASE}/threads/a+b/messages`,
    `${BASE}/threads/$a/messages`,
  ],
  'no path of this server': ['*', 'ftp://other.example/x', 'http://other.example'],
}

/** What the HTTP parser takes for no target at all. */
const UNREADABLE = [
  CLEAR.slice(1),
  `\\api\\copilotkit\\threads\\clear`,
  `?${CLEAR}`,
  `#${CLEAR}`,
  `http:${CLEAR}`,
  'gateway.example:80',
  `${BASE}/threads /clear`,
  `${CLEAR}\t`,
  `${CLEAR}\u0000`,
  `${CLEAR}\u0001`,
  `${CLEAR}\u007f`,
  `${CLEAR}\u00a0`,
  `${BASE}/threads/\u00e9/messages`,
  `${CLEAR}\rx`,
]

void testFirstPair('a target that a URL parser reads as another path is refused before authentication', async (t, pair) => {
  const { client } = pair
  const { gateway, upstream, olga } = await gated(t, undefined, { pair })
  for (const target of FOLDED_INTO_CLEAR) {
    const url = new URL(target, 'http://gateway.example')
    t.match(url.pathname, /\/api\/copilotkit\/threads\/clear\/?$/, `${target} would be read as clear`)
    for (const token of [olga, undefined]) {
      // What stands in an envelope is nobody's to read before they have said who they are.
      const first = client === 'single-route' && belowBase(target) ? { status: 401 } : { status: 400, ...MALFORMED }
      const answer = await gateway.ask({ method: 'POST', target, ...(token === undefined ? {} : { token }) })
      t.match(answer, token === undefined ? first : { status: 400, body: '"code":"target-malformed"' }, target)
    }
  }
  t.equal(upstream.beginnings(), 0, 'the upstream saw nothing of them')
})

for (const [what, targets] of Object.entries(READ_OTHERWISE)) {
  void testFirstPair(`${what} is refused for every method and every caller`, async (t, pair) => {
    const { client } = pair
    const { gateway, upstream, alice, olga } = await gated(t, undefined, { pair })
    for (const target of targets) {
      for (const [method, token] of [
        ['GET', alice],
        ['POST', olga],
        ['DELETE', 'nonsense'],
      ] as const) {
        const answer = await gateway.ask({ method, target, token })
        const unread = token === 'nonsense' && client === 'single-route' && belowBase(target)
        t.match(
          answer,
          unread ? { status: 401 } : { status: 400, body: '"code":"target-malformed"' },
          `${method} ${JSON.stringify(target)}`,
        )
      }
    }
    t.equal(upstream.beginnings(), 0)
  })
}

void testFirstPair('what is no target is refused by the parser, and the connection ends', async (t, pair) => {
  const { client } = pair
  const { gateway, upstream, olga } = await gated(t, undefined, { pair })
  for (const target of UNREADABLE) {
    if (client === 'single-route' && belowBase(target)) {
      const enclosed = await gateway.ask({ method: 'POST', target, token: olga })
      t.match(enclosed, { status: 400, ...MALFORMED }, `${JSON.stringify(target)} in an envelope`)
      continue
    }
    const answer = await gateway.ask({ method: 'POST', target, token: olga, keepAlive: true })
    t.match(answer, { status: 400, body: '"code":"header-malformed"' }, JSON.stringify(target))
    t.equal(answer.headers.get('connection'), 'close')
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('an id that is canonical and beyond its grammar is refused as an id', async (t, pair) => {
  const { gateway, upstream, alice } = await gated(t, undefined, { pair })
  const uuid = '0f6f1a52-7a2b-4c3d-8e9f-00112233aabb'
  const ids = [
    'x'.repeat(129),
    'x'.repeat(4000),
    't1.',
    't1..',
    '.t1',
    '...',
    '-t1',
    '~t1',
    't1*',
    "t1'",
    't1!',
    '(t1)',
    't1%20',
    '%20t1',
    't1%3B',
    't1%23',
    't1%3F',
    't1%40',
    'caf%C3%A9',
    '%EF%BC%8F',
    '%E2%80%AE1t',
    '%EF%BB%BFt1',
    't%C2%AD1',
    uuid.toUpperCase(),
    uuid.replaceAll('-', ''),
    `urn:uuid:${uuid}`,
    `%7B${uuid}%7D`,
  ]
  for (const id of ids) {
    const answer = await gateway.ask({ target: `${BASE}/threads/${id}/messages`, token: alice })
    t.match(answer, { status: 400, body: '"code":"thread-id-invalid"' }, id.slice(0, 40))
  }
  t.equal(upstream.beginnings(), 0)
})

void testFirstPair('the honest spelling of the same requests arrives', async (t, pair) => {
  const { gateway, upstream, olga, alice } = await gated(t, undefined, { pair })
  t.equal((await gateway.ask({ method: 'POST', target: CLEAR, token: olga })).status, 200)
  t.equal((await gateway.ask({ target: `${BASE}/info`, token: alice })).status, 200)
  t.same(
    upstream.requests.map(({ method, target }) => `${method} ${target}`),
    [`POST ${CLEAR}`, `GET ${BASE}/info`],
  )
})
