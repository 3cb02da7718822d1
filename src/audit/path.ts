/** Where an audit file may be. */
import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FileError } from './rolling-file.ts'

/**
 * What is wrong with the path of an audit file, as far as can be told without writing one.
 * @returns what it is and what to do, or null
 */
export function auditFileFault(file: string): { readonly message: string; readonly hint: string } | null {
  const hint = 'name a file in a folder that the gateway may write to'
  if (/[<>"|?*:\0]/.test(file)) return { message: `${file} has one of < > " | ? * : in it, which no audit file may have`, hint }
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    try {
      // A folder that is missing is made; one that is there has to be a folder, and to take files.
      if (!statSync(folder).isDirectory()) return { message: `${folder} is no folder`, hint }
      accessSync(folder, constants.W_OK | constants.X_OK)
      return null
    } catch (error) {
      const { code } = error as FileError
      if (code !== 'ENOENT' || folder === dirname(folder)) {
        // Of a path that is none the part that is looked at says no more than the whole.
        const named = ['EACCES', 'EROFS', 'ENOTDIR'].includes(code ?? '') ? folder : file
        return { message: `${named} cannot be written to (${code ?? 'unknown'})`, hint }
      }
    }
  }
}
