/**
 * The examples of the standards, as they are printed: whoever reads a standard otherwise than its authors finds out here. Their
 * tokens name an issuer `joe`, no audience and no user, and ended in March 2011: the gate is configured for that, and the clock
 * is set back.
 *
 * RFC 7515 appendix A.1-A.3 and A.5, RFC 7519 §3.1 and §6.1, RFC 7797 §4.1-4.2, RFC 8037 appendix A.1-A.4. Not here, because
 * nothing of it is a bearer token: RFC 7515 A.4 (its payload is no JSON), A.6-A.7 (JSON serialization), RFC 7516 (encryption).
 */
import { createPrivateKey, createPublicKey, verify } from 'node:crypto'
import { test, type Test } from 'tap'
import { keyFromJwk } from '../../src/jwt/key.ts'
import { gate, heard } from '../../testing/support/gates.ts'
import { startKeyServer } from '../../testing/support/key-server.ts'
import { claims, token, type Part } from '../../testing/support/signing.ts'

/** The time in the examples. */
const EXP = 1300819380
const PAYLOAD = 'eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ'
/** The same as RFC 7519 §3.1. */
const A1 = `eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.${PAYLOAD}.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk`
const A1_KEY = 'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow'
// oxfmt-ignore
const A2 = `eyJhbGciOiJSUzI1NiJ9.${PAYLOAD}.cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw`
const A2_KEY = {
  kty: 'RSA',
  // oxfmt-ignore
  n: 'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ',
  e: 'AQAB',
}
const A3 = `eyJhbGciOiJFUzI1NiJ9.${PAYLOAD}.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q`
const A3_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
}
/** Without a signature (RFC 7515 A.5, RFC 7519 §6.1). */
const A5 = `eyJhbGciOiJub25lIn0.${PAYLOAD}.`

/** A gate for these algorithms of `joe`, at the time of the examples, with the key set or the secret. */
async function joes(t: Test, algorithms: readonly string[], keys: Part | Buffer) {
  const running = Date.now
  const time = { now: (EXP - 60) * 1000 }
  Date.now = () => time.now
  t.teardown(() => void (Date.now = running))
  const server = await startKeyServer(t)
  const source = Buffer.isBuffer(keys) ? { secret: keys } : { jwksUri: `${server.url}/jwks` }
  if (!Buffer.isBuffer(keys)) server.keys(keys)
  const corp = { issuer: 'joe', audiences: ['joe'], audienceClaim: '/iss', claims: { id: '/iss' }, algorithms, ...source }
  const authenticate = gate(t, { corp }, { clockTolerance: '0s', now: () => time.now })
  return { time, told: (bearer: string) => heard(authenticate, bearer) }
}

for (const [name, algorithm, example, keys] of [
  ['A.1 (HS256; RFC 7519 §3.1)', 'HS256', A1, Buffer.from(A1_KEY, 'base64url')],
  ['A.2 (RS256)', 'RS256', A2, A2_KEY],
  ['A.3 (ES256)', 'ES256', A3, A3_KEY],
] as const) {
  void test(`RFC 7515 ${name} is good until its end, under its own algorithm, as it is printed`, async (t) => {
    const { told, time } = await joes(t, [algorithm], keys)
    t.equal(await told(example), 'corp:joe')
    for (const other of [A1, A2, A3, A5].filter((one) => one !== example)) t.match(await told(other), /^credential-invalid/)
    const [header = '', payload = '', signature = ''] = example.split('.')
    t.match(await told(`${header}.${payload}.${signature.slice(1)}A`), /^credential-invalid/)
    t.match(await told(`${header}.${payload}.`), /^credential-invalid/)
    time.now = EXP * 1000 + 1
    t.equal(await told(example), 'credential-expired: token-expired')
  })
}

void test('RFC 7515 A.5 and RFC 7519 §6.1: a token without a signature is none, whatever is configured', async (t) => {
  for (const [algorithms, keys] of [
    [['HS256', 'HS384', 'HS512'], Buffer.from(A1_KEY, 'base64url')],
    [['RS256', 'PS256'], A2_KEY],
    [['ES256', 'EdDSA'], A3_KEY],
  ] as const)
    t.equal(await (await joes(t, algorithms, keys)).told(A5), 'credential-invalid: algorithm-not-allowed')
})

void test('RFC 7797: a payload that is not encoded is refused, with its signature as printed or a good one', async (t) => {
  const secret = Buffer.from(A1_KEY, 'base64url')
  const { told } = await joes(t, ['HS256'], secret)
  const header = { alg: 'HS256', b64: false, crit: ['b64'] }
  const joe = { iss: 'joe', exp: EXP }
  const header42 = 'eyJhbGciOiJIUzI1NiIsImI2NCI6ZmFsc2UsImNyaXQiOlsiYjY0Il19'
  // §4.2 as printed: the payload `$.02` is detached. And with it in place, which no bearer token may hold.
  for (const payload of ['', '$.02', 'JC4wMg'])
    t.match(await told(`${header42}.${payload}.A5dxf2s96_n5FLueVuW1Z_vh161FwXZC4YLPff6dmDY`), /^credential-invalid/, payload)
  // §4.1: the payload is encoded; it is no set of claims.
  t.match(await told('eyJhbGciOiJIUzI1NiJ9.JC4wMg.5mvfOroL-g7HyqJoozehmsaqmvTYGEq5jTI1gVvoEoQ'), /^credential-invalid/)
  t.equal(await told(token({ alg: 'HS256' }, joe, secret)), 'corp:joe')
  for (const more of [
    header,
    { ...header, crit: undefined },
    { ...header, b64: true },
    { ...header, b64: true, crit: undefined },
  ])
    t.equal(await told(token(more, joe, secret)), 'credential-invalid: token-critical-extension', JSON.stringify(more))
})

const A8037 = {
  kty: 'OKP',
  crv: 'Ed25519',
  x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
}
const A8037_PRIVATE = { ...A8037, d: 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A' }
// oxfmt-ignore
const A8037_TOKEN = 'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg'

void test('RFC 8037 A.1-A.4: its key serves EdDSA; its text is signed, and no claims', async (t) => {
  const rules = { issuer: 'joe', clockTolerance: 0 }
  t.equal(keyFromJwk(A8037, ['EdDSA'], rules)?.fits('EdDSA'), true)
  t.equal(keyFromJwk(A8037, ['ES256', 'RS256'], rules), null)
  t.equal(keyFromJwk(A8037_PRIVATE, ['EdDSA'], rules), null, 'with its private half it is no key of a set')
  // What is printed was read rightly: the signature is good.
  const at = A8037_TOKEN.lastIndexOf('.')
  const publicKey = createPublicKey({ key: A8037, format: 'jwk' })
  const signature = Buffer.from(A8037_TOKEN.slice(at + 1), 'base64url')
  t.ok(verify(null, Buffer.from(A8037_TOKEN.slice(0, at)), publicKey, signature))
  const { told } = await joes(t, ['EdDSA'], A8037)
  t.equal(await told(A8037_TOKEN), 'credential-invalid: token-malformed')
  const key = createPrivateKey({ key: A8037_PRIVATE, format: 'jwk' })
  t.equal(await told(token({ alg: 'EdDSA' }, claims({ iss: 'joe', exp: EXP, nbf: undefined }), key)), 'corp:joe')
})
