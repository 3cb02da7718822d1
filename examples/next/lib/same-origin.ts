/** Whether a request comes from a page of this application, or from a client that is no browser (Fetch Metadata Request Headers). */
export function isSameOrigin({ headers }: Request): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null) return site === 'same-origin'
  const origin = headers.get('origin')
  return origin === null || (URL.canParse(origin) && new URL(origin).host === headers.get('host'))
}
