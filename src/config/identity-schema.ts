/** The schema of the identity that the gateway sends to the upstream. */
import { z } from 'zod'
import { duration, text } from '../document/quantities.ts'

/** Names that proxies and runtimes give another meaning, or that the gateway writes itself. */
const OTHER_MEANING = /^x-(?:request-id$|real-ip$|http-method|original-|rewrite-|cpki-|forwarded-(?:for|host|proto|port|server)$)/

export const ASSERTION_HEADER = 'x-threadwarden-assertion'

const headerName = z
  .string()
  .transform((name) => name.toLowerCase())
  .refine(
    (name) => /^x-[a-z0-9-]+$/.test(name) && !OTHER_MEANING.test(name),
    'is no header that can tell an identity | write x-user-id',
  )

const assertion = z
  .strictObject({
    keyFiles: z
      .array(text)
      .min(1, 'must name a file with a private key')
      .max(2, 'names more than two keys | the one that signs, and the one before or after it')
      .describe('PEM files with EC keys on P-256: the first one signs, both are published.'),
    issuer: text.describe('The `iss` of assertions: the public origin of the gateway.'),
    audience: text.describe('Their `aud`: the agents.'),
    lifetime: duration
      .prefault('60s')
      .refine((value) => value >= 1000 && value <= 600_000, 'is no lifetime of an assertion | 1s to 10m')
      .describe('How long one is good: 1s to 10m.'),
    header: headerName.prefault(ASSERTION_HEADER).describe('The header that it stands in.'),
    replaceAuthorization: z
      .boolean()
      .default(false)
      .describe("true sends it as `Authorization: Bearer …`, in place of the caller's token."),
  })
  .describe('A short-lived ES256 JWT for each request upstream; keys at /.well-known/jwks.json.')

export const identitySchema = z
  .strictObject({
    headers: z
      .strictObject({
        id: headerName.optional().describe('For the user id, corp:alice; anonymous callers are anonymous.'),
        name: headerName.optional().describe('For the name.'),
        role: headerName.optional().describe('For the roles, with commas between them.'),
        permissions: headerName.optional().describe('For the permissions, with commas between them.'),
      })
      .prefault({})
      .describe('Names of headers with the resolved user; callers can send none of them.'),
    assertion: assertion.optional(),
  })
  .refine((identity) => {
    const names = [...Object.values(identity.headers), ...(identity.assertion === undefined ? [] : [identity.assertion.header])]
    return new Set(names).size === names.length
  }, 'names one header twice | each part has its own')
  .prefault({})
  .describe('What the upstream and its agents are told of who is asking.')
