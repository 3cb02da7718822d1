/** Which file a policy reference means: a path, or `builtin:NAME` for a policy that is part of the program. */
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { suggestion } from '../document/nearest.ts'
import { text } from '../document/quantities.ts'

export const BUILTIN_POLICIES = ['default', 'managed-platform', 'multi-tenant', 'read-only-support', 'single-team'] as const

export interface PolicyFile {
  readonly path: string
  /** A part of the program does not change while the gateway runs, so it is not watched. */
  readonly isBuiltin: boolean
}

const FOLDER = fileURLToPath(new URL('../../policies', import.meta.url))
const PREFIX = 'builtin:'

export const DEFAULT_POLICY: PolicyFile = policyFile(`${PREFIX}default`, FOLDER)

/** @param folder for a relative path. A builtin name need not exist: reading the file then fails */
export function policyFile(reference: string, folder: string): PolicyFile {
  const isBuiltin = reference.startsWith(PREFIX)
  const path = isBuiltin ? resolve(FOLDER, `${reference.slice(PREFIX.length)}.yaml`) : resolve(folder, reference)
  return { path, isBuiltin }
}

/** @returns null, or the text that follows the key in a message, with the remedy behind ` | ` */
export function policyReferenceFault(reference: string): string | null {
  if (!reference.startsWith(PREFIX)) return null
  const name = reference.slice(PREFIX.length)
  if (BUILTIN_POLICIES.some((one) => one === name)) return null
  return `names no builtin policy | ${suggestion(name, BUILTIN_POLICIES, 'builtin policies')}`
}

export const policyReference = text.superRefine((reference, context) => {
  const message = policyReferenceFault(reference)
  if (message !== null) context.addIssue({ code: 'custom', message })
})
