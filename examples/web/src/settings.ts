/** Where things are: told by whoever serves the page, at /settings.json. */
export interface Settings {
  /** The public base of the gateway's routes. */
  readonly runtimeUrl: string
  readonly issuer: string
  readonly clientId: string
}

/** Asks for them. */
export async function readSettings(): Promise<Settings> {
  const answer = await fetch('/settings.json')
  if (!answer.ok) throw new Error(`no settings: ${answer.status}`)
  return (await answer.json()) as Settings
}
