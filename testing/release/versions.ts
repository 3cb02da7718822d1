/** The version of this repository, in every file that names it. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** A file, and the version in it. */
export interface NamedVersion {
  /** From the root of the repository, with what names the version there. */
  readonly where: string
  readonly version: string
}

/** Files whose text may name a version of the image, of the chart or of the program. */
const TEXTS = ['deploy/**/*', 'docs/**/*.md', 'README.md']

/** What names a version in those texts. */
const MENTIONS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['image', /ghcr\.io\/threadwarden\/threadwarden:([\w.+-]+)/g],
  ['label', /app\.kubernetes\.io\/version: ?"?([\d][\w.+-]*)"?/g],
]

/** Where the version stands. Files of the chart are left out where there is no chart. */
export function versionsIn(root: string): readonly NamedVersion[] {
  const read = (file: string): string => readFileSync(join(root, file), 'utf8')
  const manifest = JSON.parse(read('package.json')) as { readonly version: string }
  const lock = JSON.parse(read('package-lock.json')) as {
    readonly version: string
    readonly packages: { readonly '': { readonly version: string } }
  }
  const charts = globSync('deploy/helm/*/Chart.yaml', { cwd: root }).flatMap((file) => {
    const chart = parse(read(file)) as { readonly version: unknown; readonly appVersion: unknown }
    return [
      { where: `${file}: version`, version: String(chart.version) },
      { where: `${file}: appVersion`, version: String(chart.appVersion) },
    ]
  })
  return [
    { where: 'package.json', version: manifest.version },
    { where: 'package-lock.json: version', version: lock.version },
    { where: 'package-lock.json: packages', version: lock.packages[''].version },
    { where: 'CHANGELOG.md', version: latestSection(read('CHANGELOG.md'))?.version ?? 'none' },
    ...charts,
    ...mentions(root),
  ]
}

function mentions(root: string): readonly NamedVersion[] {
  const files = globSync(TEXTS, { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile())
  return files.flatMap((entry) => {
    const path = join(entry.parentPath, entry.name)
    const text = readFileSync(path, 'utf8')
    return MENTIONS.flatMap(([what, pattern]) =>
      [...text.matchAll(pattern)].map(([, version = '']) => ({
        where: `${path.slice(join(root, '/').length)}: ${what}`,
        version,
      })),
    )
  })
}

/** A section of the changelog. */
export interface Section {
  readonly version: string
  /** As it is written, such as `2026-11-25` or `unreleased`. */
  readonly date: string
  /** Without the heading. */
  readonly text: string
}

/** The first section of a changelog that has a version, or `Unreleased` as its name. */
export function latestSection(changelog: string): Section | undefined {
  const [, ...sections] = changelog.split(/^## /m)
  const [heading = '', ...lines] = (sections[0] ?? '').split('\n')
  const found = /^\[([^\]]+)\](?: - (\S+))?$/.exec(heading)
  return found === null ? undefined : { version: found[1]!, date: found[2] ?? '', text: lines.join('\n').trim() }
}
