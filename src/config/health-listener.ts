/** Where the gateway of a configuration answers health probes, also while other parts of the configuration are invalid. */
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { parseDocumentAs, readDocument, type Outcome } from '../document/document.ts'
import { Sources } from '../document/sources.ts'
import { healthSchema, type Config } from './schema.ts'
import { fillReferences } from './secrets.ts'

/** A gateway continues with its last valid configuration, so no other key is checked. */
const onlyHealth = z.object({ health: healthSchema })

export function healthListener(file: string, environment: NodeJS.ProcessEnv): Outcome<Config['health']> {
  const sources = new Sources()
  const read = readDocument(sources, file)
  if (!read.ok) return read
  const { value } = fillReferences(read.value, dirname(resolve(file)), environment, sources)
  const parsed = parseDocumentAs(read.value, onlyHealth, value)
  return parsed.ok ? { ok: true, value: parsed.value.health } : parsed
}

interface Listener {
  readonly host: string
  readonly port: number
  readonly tls?: object | undefined
}

/** @returns the URL of a listener as this machine reaches it; null for port 0, whose real port is not in the file */
export function originOf({ host, port, tls }: Listener): string | null {
  if (port === 0) return null
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${tls === undefined ? 'http' : 'https'}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}
