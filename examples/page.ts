/** Serves the page of `web/`, as it was built, and tells it where the gateway and the issuer are. */
/// <reference path="./libraries.d.ts" />
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { listen, stop } from './http.ts'
import { CLIENT } from './sign-in.ts'

const BUILT = fileURLToPath(new URL('web/dist', import.meta.url))

/** Where the page finds things. */
export interface Whereabouts {
  /** The public base of the gateway's routes. */
  readonly runtimeUrl: string
  readonly issuer: string
}

export interface Page {
  /** Its origin, which the gateway has to allow. */
  readonly url: string
  close(): Promise<void>
}

/**
 * Starts to serve it, on 127.0.0.1 alone: that is where the issuer takes the page for its client.
 * @param whereabouts asked at each load of the page: they may be known later than the page's own origin
 * @param port 0, the default: any free one
 * @throws if it was not built
 */
export async function startPage(whereabouts: () => Whereabouts, port = 0): Promise<Page> {
  if (!existsSync(BUILT)) throw new Error('the page is not built: run npm run build:web')
  const application = express()
  application.get('/settings.json', (_request, response) => response.json({ ...whereabouts(), clientId: CLIENT.id }))
  application.use(express.static(BUILT))
  application.get('/callback', (_request, response) => response.sendFile('index.html', { root: BUILT }))
  const server = createServer(application)
  const { origin } = await listen(server, port, '127.0.0.1')
  return { url: origin, close: () => stop(server) }
}
