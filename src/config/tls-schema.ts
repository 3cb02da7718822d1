/** The schemas of TLS: at the public listener, and to an upstream. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { text } from '../document/quantities.ts'

const minVersion = z.enum(['TLSv1.2', 'TLSv1.3']).default('TLSv1.2').describe('The oldest TLS version that the gateway accepts.')

export const listenTlsSchema = z
  .strictObject({
    certificateFile: text.describe('A PEM file with the certificate of the gateway, followed by its intermediates.'),
    keyFile: text.describe('A PEM file with the private key of the certificate, without a passphrase.'),
    minVersion,
    clientCertificates: z
      .strictObject({
        ca: text.describe('A PEM file with the CA that issues the certificates of clients. Use one that issues no others.'),
      })
      .optional()
      .describe('Requires a client certificate of every connection, besides the token of each request.'),
  })
  .describe('TLS at the public listener. Without this key, it speaks plain HTTP.')

export const upstreamTlsSchema = z
  .strictObject({
    ca: text.optional().describe('A PEM file with the private CA of the upstream; by default, the CAs of Node.js.'),
    certificateFile: text
      .optional()
      .describe('A PEM file with the client certificate of the gateway, followed by its intermediates.'),
    keyFile: text.optional().describe('A PEM file with the private key of the client certificate, without a passphrase.'),
    minVersion,
    serverName: z
      .string()
      .max(253, 'is not a host name')
      // Helm checks the schema with Go's regular expressions, which know no lookahead.
      .regex(/^[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?$/, 'is not a host name')
      .refine((name) => isIP(name) === 0, 'is an address | write a host name of the certificate')
      .optional()
      .describe("The host name of the upstream's certificate, if it is not that of the URL; also sent as SNI."),
  })
  .superRefine(({ certificateFile, keyFile }, context) => {
    if ((certificateFile === undefined) === (keyFile === undefined)) return
    const [path, other] =
      keyFile === undefined ? (['keyFile', 'certificateFile'] as const) : (['certificateFile', 'keyFile'] as const)
    context.addIssue({ code: 'custom', path: [path], message: `is required with ${other} | name both files of the pair` })
  })
  .describe('TLS to the upstream, for https URLs.')
