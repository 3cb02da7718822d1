/** The schema of the identity that the gateway sends to the upstream. */
import { z } from 'zod'
import { duration, text } from '../document/quantities.ts'

/** Names that proxies and runtimes give another meaning, or that the gateway writes itself. */
const OTHER_MEANING = /^x-(?:request-id$|real-ip$|http-method|original-|rewrite-|cpki-|forwarded-(?:for|host|proto|port|server)$)/

export const ASSERTION_HEADER = 'x-threadwarden-assertion'

const headerName = z
  .string()
  .transform((name) => name.toLowerCase())
  .refine((name) => /^x-[a-z0-9-]+$/.test(name) && !OTHER_MEANING.test(name), 'cannot be an identity header | write x-user-id')

const assertion = z
  .strictObject({
    keyFiles: z
      .array(text)
      .min(1, 'must name a file with a private key')
      .max(2, 'names more than two keys | the one that signs, and the one before or after it')
      .describe('PEM files with EC P-256 private keys. The first signs; both are published.'),
    issuer: text.describe('The `iss` of assertions: the public origin of the gateway.'),
    audience: text.describe('The `aud` of assertions.'),
    lifetime: duration
      .prefault('60s')
      .refine((value) => value >= 1000 && value <= 600_000, 'is not a lifetime of an assertion | write 1s to 10m')
      .describe('The lifetime of an assertion: 1s to 10m.'),
    header: headerName.prefault(ASSERTION_HEADER).describe('The header that carries the assertion.'),
    replaceAuthorization: z
      .boolean()
      .default(false)
      .describe("true sends the assertion as `Authorization: Bearer …` instead of the caller's token."),
  })
  .describe('A short-lived ES256 JWT about the caller for each upstream request; its keys are at /.well-known/jwks.json.')

export const identitySchema = z
  .strictObject({
    headers: z
      .strictObject({
        id: headerName.optional().describe('The header for the user id: corp:alice, or anonymous.'),
        name: headerName.optional().describe('The header for the name.'),
        role: headerName.optional().describe('The header for the roles, separated by commas.'),
        permissions: headerName.optional().describe('The header for the permissions, separated by commas.'),
      })
      .prefault({})
      .describe('Names of headers that describe the caller. Callers cannot send them.'),
    assertion: assertion.optional(),
  })
  .refine((identity) => {
    const names = [...Object.values(identity.headers), ...(identity.assertion === undefined ? [] : [identity.assertion.header])]
    return new Set(names).size === names.length
  }, 'names one header twice | each part has its own')
  .prefault({})
  .describe('How the gateway tells the upstream who the caller is.')
