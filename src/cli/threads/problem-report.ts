/** Reports what could not be imported: the first few problems on the terminal, all of them in a file. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { ownerWord, problemData, type Problem } from '../../tools/import-export/problem.ts'
import { atScope } from '../../tools/import-export/users.ts'
import { UsageError } from '../command.ts'
import { harmless } from '../terminal.ts'

export interface ProblemReport {
  readonly add: (problem: Problem) => void
  summary(): readonly string[]
  close(): void
}

const MOST_SHOWN = 20

/**
 * @param file overwritten if it exists
 * @throws UsageError if it cannot be written
 */
export function makeProblemReport(file: string | undefined): ProblemReport {
  const to = file === undefined ? null : openedFor(file)
  const shown: string[] = []
  let count = 0
  return {
    add(problem) {
      count += 1
      if (shown.length < MOST_SHOWN) shown.push(textOf(problem))
      if (to !== null) writeSync(to, `${JSON.stringify(problemData(problem))}\n`)
    },
    summary() {
      if (count === shown.length) return shown
      return [
        ...shown,
        `and ${count - shown.length} more: ${file === undefined ? '--report FILE writes all of them' : `see ${file}`}`,
      ]
    },
    close() {
      if (to !== null) closeSync(to)
    },
  }
}

function openedFor(file: string): number {
  try {
    // The report names users and threads: only the file's owner may read it.
    return openSync(file, 'w', 0o600)
  } catch {
    throw new UsageError(`--report ${file} cannot be written`)
  }
}

function textOf({ kind, line, scope, threadId, owner, reason }: Problem): string {
  const place = line === null ? '' : `line ${line}: `
  const thread =
    threadId === null || kind === 'invalid'
      ? ''
      : `${threadId}${atScope(scope)}${owner === null ? '' : ` (${ownerWord(owner)})`}: `
  return harmless(`${place}${thread}${reason}`)
}
