/** Writes a configuration that the gateway accepts, and replaces no file unasked. */
import { closeSync, constants, copyFileSync, existsSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { faultLine, type Fault } from '../../document/fault.ts'
import { prepare } from '../../snapshot/load.ts'
import { CommandFailed } from '../command.ts'
import { complain, write, type Terminal } from '../terminal.ts'
import { STDOUT } from './request.ts'

/** Secrets stay in other files, but addresses are not for every user of the machine. */
const MODE = 0o640

/** Before anything is asked. @throws CommandFailed */
export function requireFree(out: string, force: boolean): void {
  if (out !== STDOUT && !force && existsSync(out)) throw taken(out)
}

function taken(out: string): CommandFailed {
  return new CommandFailed(`error: ${out} exists already: pass --force to replace it, or another --out`)
}

/** @returns the warnings of the configuration @throws CommandFailed, with nothing written */
export function save(terminal: Terminal, out: string, force: boolean, text: string): readonly Fault[] {
  const isStdout = out === STDOUT
  const folder = isStdout ? mkdtempSync(join(tmpdir(), 'threadwarden-init-')) : dirname(out)
  // Checked where it will be, because its files are named from there.
  const draft = join(folder, `.${isStdout ? 'threadwarden.yaml' : basename(out)}.${process.pid}.draft`)
  let isMade = false
  try {
    const file = openSync(draft, 'wx', MODE)
    isMade = true
    try {
      writeFileSync(file, text)
    } finally {
      closeSync(file)
    }
    const prepared = prepare(draft, terminal.env)
    const named = (fault: Fault): Fault => ({ ...fault, file: out })
    if (!prepared.ok) {
      // The file does not exist, so its lines mean nothing.
      for (const { line: _line, ...fault } of prepared.faults) complain(terminal, `error: ${faultLine(named(fault))}`)
      throw new CommandFailed('nothing was written: correct the options')
    }
    if (isStdout) write(terminal, text)
    else if (force) renameSync(draft, out)
    // A copy that fails, for example on a full disk, leaves no part of the file.
    else copyFileSync(draft, out, constants.COPYFILE_EXCL)
    return prepared.value.warnings.map(named)
  } catch (error) {
    if (error instanceof CommandFailed || !(error instanceof Error) || !('code' in error)) throw error
    if (error.code === 'EEXIST' && !isMade) {
      throw new CommandFailed(`error: ${draft} exists already: remove it, if it is the draft of an init that was killed`)
    }
    if (error.code === 'EEXIST') throw taken(out)
    throw new CommandFailed(
      `error: ${out} cannot be written (${String(error.code)}): name a file in a folder that exists and is writable`,
    )
  } finally {
    if (isStdout) rmSync(folder, { recursive: true, force: true })
    // Another program's file may have the name.
    else if (isMade) rmSync(draft, { force: true })
  }
}
