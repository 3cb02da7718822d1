/** The two pages between "sign in" and "signed in": who are you, and may the client act for you. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type Provider from 'oidc-provider'
import type { Interaction } from 'oidc-provider'
import { ACCOUNTS } from './accounts.ts'
import { readBody } from './http.ts'

/** Where the pages are: `/interaction/<uid>`. */
export const INTERACTION_PATH = /^\/interaction\/[\w-]+$/

/**
 * Serves a page of a sign-in under way (GET), or takes what its form sends (POST) and lets the provider go on.
 * Which sign-in it is comes from the provider's own signed cookie, not from the address.
 */
export async function serveInteraction(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const interaction = await provider.interactionDetails(request, response)
    if (request.method === 'GET') {
      sendPage(response, 200, interaction.prompt.name === 'login' ? loginForm() : consentForm(interaction))
    } else if (request.method === 'POST') {
      const form = new URLSearchParams(await readBody(request, 4096))
      await finish(provider, interaction, form, request, response)
    } else {
      sendPage(response, 405, '<p>Method not allowed.</p>')
    }
  } catch (error) {
    if (response.headersSent) response.destroy()
    else sendPage(response, 400, `<p>${escape(error instanceof Error ? error.message : String(error))}</p>`)
  }
}

async function finish(
  provider: Provider,
  interaction: Interaction,
  form: URLSearchParams,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (interaction.prompt.name === 'login') {
    const accountId = form.get('login') ?? ''
    if (!ACCOUNTS.has(accountId)) throw new Error(`there is no user ${accountId}`)
    await provider.interactionFinished(request, response, { login: { accountId } }, { mergeWithLastSubmission: false })
  } else {
    const grantId = await grant(provider, interaction)
    await provider.interactionFinished(request, response, { consent: { grantId } }, { mergeWithLastSubmission: true })
  }
}

/** Grants what the client asked for and hasn't got yet; returns the grant's id. */
async function grant(provider: Provider, { grantId, session, params, prompt }: Interaction): Promise<string> {
  if (session === undefined) throw new Error('consent comes after the sign-in')
  const known = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const granted = known ?? new provider.Grant({ accountId: session.accountId, clientId: params.client_id })
  const { missingOIDCScope, missingResourceScopes } = prompt.details
  if (missingOIDCScope !== undefined) granted.addOIDCScope(missingOIDCScope.join(' '))
  for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
    granted.addResourceScope(resource, scopes.join(' '))
  }
  return granted.save()
}

function loginForm(): string {
  const people = [...ACCOUNTS].map(
    ([subject, { name, role }]) =>
      `<p><button name="login" value="${escape(subject)}">${escape(name)} (${escape(role)})</button></p>`,
  )
  return `<h1>Who are you?</h1><form method="post">${people.join('')}</form>`
}

function consentForm({ session, params }: Interaction): string {
  return (
    `<h1>Allow access?</h1><p>${escape(params.client_id)} wants to chat as ${escape(session?.accountId ?? 'you')}.</p>` +
    '<form method="post"><p><button name="consent" value="yes">Allow</button></p></form>'
  )
}

/** Sends a page that loads nothing from anywhere. */
export function sendPage(response: ServerResponse, status: number, body: string): void {
  response
    .writeHead(status, { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' })
    .end(`<!doctype html><html lang="en"><meta charset="utf-8"><title>Demo sign-in</title><body>${body}</body></html>`)
}

/** Text as it may stand in HTML, also inside a quoted attribute. */
export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
