/** Packs a Helm chart without Helm, in the layout of `helm package`: one folder with the name of the chart, Chart.yaml first. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, matchesGlob } from 'node:path'
import { create } from 'tar'

/**
 * Packs the chart in a folder. The same files give the same bytes.
 * @param epoch the time of every entry, in seconds since 1970
 */
export async function packChart(folder: string, file: string, epoch: number): Promise<void> {
  const name = basename(folder)
  const files = filesOf(folder).map((path) => `${name}/${path}`)
  const options = { cwd: join(folder, '..'), file, portable: true, noDirRecurse: true, mtime: new Date(epoch * 1000) }
  await create({ ...options, gzip: { level: 9 } }, files)
}

function filesOf(folder: string): readonly string[] {
  const ignored = ignoredBy(folder)
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  const files = entries.map((entry) => join(entry.parentPath, entry.name).slice(join(folder, '/').length))
  const kept = files.filter((file) => file !== '.helmignore' && !ignored(file)).toSorted()
  if (!kept.includes('Chart.yaml')) throw new Error(`${folder} has no Chart.yaml`)
  return ['Chart.yaml', ...kept.filter((file) => file !== 'Chart.yaml')]
}

/** The patterns of .helmignore that are names; others are refused, because Helm would read them in its own way. */
function ignoredBy(folder: string): (file: string) => boolean {
  let text = ''
  try {
    text = readFileSync(join(folder, '.helmignore'), 'utf8')
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw error
  }
  const patterns = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  const unknown = patterns.find((pattern) => /[/!]/.test(pattern))
  if (unknown !== undefined) throw new Error(`.helmignore: only patterns of file names are supported, not ${unknown}`)
  return (file) => patterns.some((pattern) => matchesGlob(basename(file), pattern))
}
