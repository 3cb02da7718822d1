/** The users of the demo. */

/** The claims about a user in an access token. */
export interface Account {
  readonly name: string
  readonly role: string
  readonly permissions: readonly string[]
}

/** By subject. There are no passwords: these users are for demos and tests. */
export const ACCOUNTS: ReadonlyMap<string, Account> = new Map<string, Account>([
  ['alice', { name: 'Alice', role: 'member', permissions: [] }],
  ['bob', { name: 'Bob', role: 'member', permissions: [] }],
  ['olga', { name: 'Olga', role: 'operator', permissions: ['threads:operate'] }],
])
