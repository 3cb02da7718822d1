/** Starts the hooks with the server, so that an error in the configuration ends it. */
export async function register(): Promise<void> {
  if (process.env.NEXT_RUNTIME !== 'nodejs') return
  const { startWithServer } = await import('./lib/runtime.ts')
  await startWithServer()
}
