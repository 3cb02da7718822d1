/** Checks the path of an audit file. */
import { accessSync, constants, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FileError } from './rolling-file.ts'

/**
 * Checks as far as possible without writing a file.
 * @returns the problem and what to do, or null
 */
export function auditFileFault(file: string): { readonly message: string; readonly hint: string } | null {
  const hint = 'name a file in a folder that the gateway may write to'
  if (/[<>"|?*:\0]/.test(file)) return { message: `${file} has one of < > " | ? * : in it, which no audit file may have`, hint }
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    try {
      // A missing folder is made; an existing one must be a folder, and must take files.
      if (!statSync(folder).isDirectory()) return { message: `${folder} is no folder`, hint }
      accessSync(folder, constants.W_OK | constants.X_OK)
      return null
    } catch (error) {
      const { code } = error as FileError
      if (code !== 'ENOENT' || folder === dirname(folder)) {
        // With other errors the path itself is invalid: its checked part says no more than the whole.
        const named = ['EACCES', 'EROFS', 'ENOTDIR'].includes(code ?? '') ? folder : file
        return { message: `${named} cannot be written to (${code ?? 'unknown'})`, hint }
      }
    }
  }
}
