/** `threadwarden explain` on a configuration with files beside it. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Changes } from '../../testing/support/configuration.ts'
import { run } from './in-process.ts'
import { configFile } from '../../testing/support/program.ts'

/**
 * Makes a configuration and files beside it, and the command on it.
 * @param files texts by name; an argument that is a name stands for the path of the file, `@name` for `@path`
 */
export function scene(t: Test, changes: Changes = {}, files: Readonly<Record<string, string>> = {}) {
  const { file, folder } = configFile(t, changes)
  const paths = Object.fromEntries(Object.keys(files).map((name) => [name, join(folder, name)]))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  const explain = (...args: readonly string[]) =>
    run(t, [
      'explain',
      '--config',
      file,
      ...args.map((arg) => paths[arg] ?? (arg.startsWith('@') ? `@${paths[arg.slice(1)] ?? ''}` : arg)),
    ])
  return { file, folder, explain }
}
