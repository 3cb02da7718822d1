/** The schema of the console on the admin listener. */
import { z } from 'zod'
import { isPointer } from '../core/json/pointer.ts'
import { isFetchable } from '../core/wire/addresses.ts'
import { text } from '../document/quantities.ts'

const openId = z
  .strictObject({
    issuer: z
      .url()
      .refine((value) => isFetchable(value), 'needs https | http is for loopback addresses only')
      .describe('The OpenID provider of the operators, by its issuer URL.'),
    clientId: text.describe('The client id of the console. Register URL/console/callback as its redirect address.'),
    clientSecret: text.optional().describe('Its secret; write "${file:…}". Omit it for a public client.'),
    scopes: text.default('openid profile').describe('The scopes to ask for, with openid.'),
    rolesClaim: z
      .string()
      .refine((path) => path !== '' && isPointer(path), 'is not a JSON pointer | write /roles or /realm_access/roles')
      .default('/roles')
      .describe('The claim of the ID token with the roles: one, or a list.'),
    operators: z.array(text).min(1, 'must name at least one role').describe('Users with one of these roles may do everything.'),
    viewers: z.array(text).default([]).describe('Users with one of these roles may look, and change nothing.'),
  })
  .describe('Sign-in by OpenID Connect, beside the credential.')

export const consoleSchema = z
  .strictObject({
    url: z
      .string()
      .refine(
        (value) => URL.canParse(value) && new URL(value).origin === value && /^https?:/.test(value),
        'is not an origin | write https://ops.example.com',
      )
      .optional()
      .describe('The origin at which browsers reach the console; by default a loopback address.'),
    openId: openId.optional(),
  })
  .refine(
    (value) => value.openId === undefined || value.url !== undefined,
    'openId needs url | the address that the issuer leads back to',
  )
  .describe('The console for operators, at /console of the admin listener; off unless this key is present. {} switches it on.')
