/** The people of the demo. */

/** What the issuer says about a person in an access token. */
export interface Account {
  readonly name: string
  readonly role: string
  readonly permissions: readonly string[]
}

/** By subject. Nobody has a password: these are for machines on which nothing is worth one. */
export const ACCOUNTS: ReadonlyMap<string, Account> = new Map<string, Account>([
  ['alice', { name: 'Alice', role: 'member', permissions: [] }],
  ['bob', { name: 'Bob', role: 'member', permissions: [] }],
  ['olga', { name: 'Olga', role: 'operator', permissions: ['threads:operate'] }],
])
