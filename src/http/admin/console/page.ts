/** The files of the console's page, and the headers that confine it. */
import { createHash } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export interface PageFile {
  readonly type: string
  readonly bytes: Buffer
}

export interface Page {
  readonly html: PageFile
  /** By name, without the folder. */
  readonly files: ReadonlyMap<string, PageFile>
  readonly headers: Readonly<Record<string, string>>
}

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
}

/** What the page's modules import by name. */
const LIBRARY = ['preact', 'preact/hooks', 'preact/jsx-runtime'] as const

/** The compiled page, also for a gateway that runs from its source. */
const FOLDER = new URL('../../../../dist/console/', import.meta.url)

/** @throws Error without a compiled page */
export function loadPage(): Page {
  const files = new Map<string, PageFile>()
  for (const name of filesIn(FOLDER)) {
    const type = TYPES[name.slice(name.lastIndexOf('.') + 1)]
    if (type !== undefined) files.set(name, { type, bytes: readFileSync(new URL(name, FOLDER)) })
  }
  const imports: Record<string, string> = {}
  for (const name of LIBRARY) {
    const file = `library-${name.replaceAll('/', '-')}.js`
    imports[name] = `/console/${file}`
    files.set(file, { type: TYPES['js'] ?? '', bytes: readFileSync(fileURLToPath(import.meta.resolve(name))) })
  }
  const map = JSON.stringify({ imports })
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Threadwarden console</title>
<link rel="icon" href="/console/icon.svg">
<link rel="stylesheet" href="/console/style.css">
<script type="importmap">${map}</script>
<script type="module" src="/console/main.js"></script>
</head>
<body><noscript>The console needs JavaScript.</noscript></body>
</html>
`
  return {
    html: { type: 'text/html; charset=utf-8', bytes: Buffer.from(html) },
    files,
    headers: {
      'content-security-policy': `default-src 'none'; script-src 'self' 'sha256-${createHash('sha256').update(map).digest('base64')}'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'no-store',
    },
  }
}

function filesIn(folder: URL): readonly string[] {
  try {
    return readdirSync(folder)
  } catch {
    throw new Error('the page of the console is not compiled: run npm run build')
  }
}
