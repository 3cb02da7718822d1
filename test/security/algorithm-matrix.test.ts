/**
 * Every algorithm with every kind of key in every place where a key can be named: only where all three go together does the
 * gateway start, or take a token; a token that claims another algorithm than it is signed by passes nowhere.
 *
 * RFC 8725 §3.1 and §2.1, RFC 7518 §3.1. What a key set member says of itself is in jwk-algorithms.test.ts, and what somebody
 * may take a public key for in algorithm-confusion.test.ts.
 */
import type { KeyObject } from 'node:crypto'
import { test, type Test } from 'tap'
import { gate, heard } from '../../testing/support/gates.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { claims, jwkOf, PAIRS, pemOf, signedAs } from '../../testing/support/signing.ts'

const SECRET = Buffer.alloc(64, 's')

/** The kinds of keys, with the algorithms that each serves. */
const KINDS: readonly (readonly [
  name: string,
  publicKey: KeyObject | null,
  privateKey: KeyObject | Buffer,
  serves: readonly string[],
])[] = [
  // oxfmt-ignore
  ['rsa', PAIRS.rsa.publicKey, PAIRS.rsa.privateKey, ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']],
  ['p256', PAIRS.p256.publicKey, PAIRS.p256.privateKey, ['ES256']],
  ['p384', PAIRS.p384.publicKey, PAIRS.p384.privateKey, ['ES384']],
  ['p521', PAIRS.p521.publicKey, PAIRS.p521.privateKey, ['ES512']],
  ['ed25519', PAIRS.ed25519.publicKey, PAIRS.ed25519.privateKey, ['EdDSA']],
  ['secret', null, SECRET, ['HS256', 'HS384', 'HS512']],
]
const ALGORITHMS = KINDS.flatMap(([, , , serves]) => serves)

/** The places where a key can be named: each with the kinds that belong there, and how one gets there. */
const PLACES: Readonly<Record<string, (t: Test, publicKey: KeyObject | null) => Promise<object>>> = {
  publicKeyFile: (_t, key) => Promise.resolve({ publicKey: key === null ? SECRET : pemOf(key) }),
  secretFile: (_t, key) => Promise.resolve({ secret: key === null ? SECRET : pemOf(key) }),
  jwksUri: async (t, key) => {
    const server = await startKeyServer(t)
    server.keys(key === null ? { kty: 'oct', kid: 'k', k: SECRET.toString('base64url') } : jwkOf(key, { kid: 'k' }))
    return { jwksUri: `${server.url}/jwks` }
  },
}

/** A gate, or null where the configuration is refused. */
function gateOf(t: Test, corp: object) {
  try {
    return gate(t, { corp: { ...corp } })
  } catch {
    return null
  }
}

for (const [place, source] of Object.entries(PLACES)) {
  void test(`${place}: of ${ALGORITHMS.length} algorithms and ${KINDS.length} kinds of keys, only what goes together passes`, async (t) => {
    const passed: string[] = []
    const started: string[] = []
    for (const [kind, publicKey, privateKey] of KINDS) {
      const where = await source(t, publicKey)
      for (const algorithm of ALGORITHMS) {
        const authenticate = gateOf(t, { algorithms: [algorithm], ...where })
        if (authenticate === null) continue
        started.push(`${kind} as ${algorithm}`)
        // Every way to sign that this key knows, called by the one algorithm that is configured.
        const used = KINDS.find(([name]) => name === kind)?.[3] ?? []
        for (const alg of used) {
          const bearer = signedAs(alg, JSON.stringify({ alg: algorithm, kid: 'k' }), claims(), privateKey)
          if ((await heard(authenticate, bearer)) === 'corp:alice') passed.push(`${kind} ${alg} as ${algorithm}`)
        }
      }
    }
    const belongs = KINDS.filter(([, publicKey]) => (publicKey === null) === (place === 'secretFile'))
    t.same(
      passed,
      belongs.flatMap(([kind, , , serves]) => serves.map((alg) => `${kind} ${alg} as ${alg}`)),
    )
    // What a set holds is found out only when it is fetched: there every public algorithm is taken, and no secret one.
    const starts =
      place === 'jwksUri'
        ? KINDS.flatMap(([kind]) => ALGORITHMS.filter((alg) => !alg.startsWith('HS')).map((alg) => `${kind} as ${alg}`))
        : belongs.flatMap(([kind, , , serves]) => serves.map((alg) => `${kind} as ${alg}`))
    t.same(started, starts)
  })
}

void test('a gate takes a token of its own key and algorithm, and of no other kind, whatever the token calls itself', async (t) => {
  const passed: string[] = []
  for (const [kind, publicKey, , serves] of KINDS) {
    for (const algorithm of serves) {
      const source = publicKey === null ? { secret: SECRET } : { publicKey: pemOf(publicKey) }
      const authenticate = gate(t, { corp: { algorithms: [algorithm], ...source } })
      for (const [other, , privateKey, used] of KINDS) {
        for (const alg of used) {
          for (const named of new Set([alg, algorithm])) {
            const bearer = signedAs(alg, JSON.stringify({ alg: named }), claims(), privateKey)
            if ((await heard(authenticate, bearer)) === 'corp:alice') passed.push(`${kind} ${algorithm} by ${other} ${alg}`)
          }
        }
      }
    }
  }
  t.same(
    passed,
    KINDS.flatMap(([kind, , , serves]) => serves.map((alg) => `${kind} ${alg} by ${kind} ${alg}`)),
  )
})
