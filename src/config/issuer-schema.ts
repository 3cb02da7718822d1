/** The schema of one issuer: whose tokens are accepted, with which keys, and which claims identify a user. */
import { z } from 'zod'
import { isFetchable } from '../core/wire/addresses.ts'
import { isPointer } from '../core/json/pointer.ts'
import { COOKIE_NAME } from '../core/wire/cookies.ts'
import { ALGORITHMS, isSecretAlgorithm } from '../jwt/algorithms.ts'
import { tokenTypeName } from '../jwt/claims.ts'
import { duration, text } from '../document/quantities.ts'

const pointer = z
  .string()
  .refine((path) => path !== '' && isPointer(path), 'is not a JSON pointer | write /sub or /realm_access/roles')

/** A name that a claim is compared with: a blank or a star would look like "any" but match nothing. */
const exactName = text.refine(
  (name) => name === name.trim() && name !== '*',
  'is compared exactly | write the full value, without blanks around it',
)

/** A media type below `application/` (RFC 6838 §4.2), as RFC 7515 §4.1.9 permits it. */
const tokenType = z
  .string()
  .regex(
    /^(?:[Aa][Pp][Pp][Ll][Ii][Cc][Aa][Tt][Ii][Oo][Nn]\/)?[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]*$/,
    'is not a token type | write at+jwt',
  )
  .transform(tokenTypeName)

const claimValue = z.union([z.string(), z.number(), z.boolean()])

const introspection = z
  .strictObject({
    url: z.url().describe('The introspection endpoint (RFC 7662).'),
    clientId: text.describe('The client id of the gateway at the issuer.'),
    clientSecret: text.describe('The client secret of the gateway; write "${file:…}".'),
    clientAuthentication: z
      .enum(['basic', 'post'])
      .default('basic')
      .describe('Sends id and secret in the Authorization header (basic) or in the form (post); RFC 6749 §2.3.1.'),
    cacheFor: duration
      .prefault('30s')
      .describe('How long an answer is cached, at most until the token expires; 0s asks for every request.'),
  })
  .describe('For opaque tokens: the gateway asks the issuer about each token. At most one issuer.')

/** A credential cookie is opt-in: browsers add it to requests of any page. */
const credential = z
  .strictObject({
    header: z
      .boolean()
      .optional()
      .describe('Accepts its tokens in the Authorization header; by default only if there is no cookie.'),
    cookie: z
      .string()
      .regex(
        COOKIE_NAME,
        'is not a cookie name | write __Host-session: letters, digits, no spaces, quotes, commas or equal signs',
      )
      .max(256, 'is too long | at most 256 characters')
      .optional()
      .describe('Accepts its tokens in the cookie of this name, from pages of listen.publicOrigins and cors.origins only.'),
  })
  .refine(({ header, cookie }) => header !== false || cookie !== undefined, 'accepts no token | write cookie, or header: true')
  .prefault({})
  .describe('Where callers send its tokens.')

/** True if the issuer's tokens are accepted in the Authorization header. */
export function takesHeader({ header, cookie }: z.output<typeof credential>): boolean {
  return header ?? cookie === undefined
}

export const issuerSchema = z
  .strictObject({
    issuer: exactName.describe('The `iss` of its tokens; with discovery also the URL of its metadata.'),
    audiences: z.array(exactName).min(1, 'must name at least one audience').describe('A token must be for one of these.'),
    audienceClaim: pointer.default('/aud').describe('The claim with the audience: /aud; Clerk /azp, Cognito /client_id.'),
    algorithms: z
      .array(z.enum(ALGORITHMS))
      .min(1, 'must name at least one algorithm')
      .optional()
      .describe('The accepted signature algorithms. Omit it to introspect every token.'),
    credential,
    jwksUri: z.url().optional().describe('The URL of the key set, instead of discovery.'),
    publicKeyFile: text.optional().describe('A PEM file with one public key, instead of discovery.'),
    secretFile: text.optional().describe('A file with the shared secret of HS256, HS384 or HS512.'),
    introspection: introspection.optional(),
    insecureHttp: z
      .boolean()
      .default(false)
      .describe('true allows plain http to other machines for keys, metadata and introspection.'),
    ca: text.optional().describe('A PEM file with the private CA of the issuer.'),
    bearerTokenFile: text.optional().describe('A file with the bearer token that the issuer requires for its keys (Kubernetes).'),
    keyCache: duration.prefault('10m').describe('How long a fetched key set is fresh.'),
    staleIfError: duration.prefault('24h').describe('How long the last good keys are used while the issuer fails.'),
    clockTolerance: duration
      .optional()
      .describe('The allowed clock difference for this issuer; by default authentication.clockTolerance.'),
    maxTokenAge: duration.optional().describe('Refuses tokens whose iat is older, and tokens without iat.'),
    tokenTypes: z
      .array(tokenType)
      .min(1, 'must name at least one type | JWT, at+jwt')
      .optional()
      .describe('The accepted `typ` headers of tokens; by default JWT, at+jwt or none.'),
    requiredClaims: z
      .record(pointer, z.union([z.null(), claimValue, z.array(claimValue).min(1)]))
      .default({})
      .describe('Claims that a token must have, by JSON pointer: this value, one of these, or (null) any value.'),
    claims: z
      .strictObject({
        id: pointer.default('/sub').describe('The user id: a string that is never given to another user.'),
        name: pointer.default('/name').describe('The display name.'),
        role: pointer.default('/role').describe('The roles: a string, or a list of strings.'),
        permissions: pointer
          .default('/permissions')
          .describe('The permissions: a list of strings, or one string with spaces between them.'),
        groups: pointer.default('/groups').describe('The groups for sharing: a string, or a list of strings.'),
      })
      .prefault({})
      .describe('JSON pointers to the claims that describe the user.'),
  })
  .superRefine((value, context) => {
    const issue = (path: string[], message: string): void => context.addIssue({ code: 'custom', path, message })
    const sources = [value.jwksUri, value.publicKeyFile, value.secretFile].filter((source) => source !== undefined)
    if (sources.length > 1) issue([], 'names more than one source of keys | keep one of jwksUri, publicKeyFile, secretFile')
    if (value.algorithms === undefined && (value.introspection === undefined || sources.length > 0)) {
      issue(['algorithms'], 'must name at least one algorithm | RS256 is what most issuers sign with')
    }
    const algorithms = value.algorithms ?? []
    const secret = algorithms.filter(isSecretAlgorithm)
    // The configuration decides between a shared secret and a public key, never the token (RFC 8725 §3.1).
    if (value.secretFile === undefined && secret.length > 0) {
      issue(['algorithms'], `${secret.join(', ')} needs secretFile | public keys serve RS, PS, ES and EdDSA`)
    }
    if (value.secretFile !== undefined && secret.length !== algorithms.length) {
      issue(['algorithms'], 'secretFile serves HS256, HS384 and HS512 only')
    }
    for (const [path, url] of [
      [['issuer'], sources.length === 0 && value.algorithms !== undefined ? value.issuer : undefined],
      [['jwksUri'], value.jwksUri],
      [['introspection', 'url'], value.introspection?.url],
    ] as const) {
      if (url !== undefined && !isFetchable(url, value.insecureHttp)) {
        issue(
          [...path],
          'keys are fetched by https only | http is for loopback addresses, and where insecureHttp: true names the exception',
        )
      }
    }
  })
