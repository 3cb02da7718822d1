/** The ownership store: can it be opened and written, and will it still be there tomorrow? Nothing is made or changed. */
import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { storeFile } from '../config/schema.ts'
import { lostWith } from '../store/durability.ts'
import { lookAtStore } from '../store/look.ts'
import { notChecked, ok, problem, type Finding } from './finding.ts'
import type { Check, Known, Subject } from './subject.ts'

/** While the check waits for another process's lock, nothing else goes on here. */
const BUSY_TIMEOUT_MS = 1000

/** The checks of the store. */
export const STORE_CHECKS: readonly Check[] = [
  { name: 'store.file', run: (subject) => Promise.resolve([look(fileOf(subject), subject.known)]) },
  { name: 'store.durable', run: (subject) => Promise.resolve([durable(fileOf(subject), subject.machine.mounts)]) },
]

function fileOf({ config }: Subject): string {
  return storeFile(config.ownership)
}

function look(file: string, known: Known): Finding {
  const seen = lookAtStore(file, BUSY_TIMEOUT_MS)
  switch (seen.outcome) {
    case 'unusable':
      if (!existsSync(file)) known.storeEmpty = true
      return problem('store.file', seen.message, `${seen.hint}; run the doctor as the user that runs the gateway`)
    case 'missing':
      known.storeEmpty = true
      return ok(
        'store.file',
        `${file} is not there yet: the gateway makes it when it starts. If it has run before, the path is wrong or a volume is missing`,
      )
    case 'usable':
      known.storeEmpty = seen.isEmpty
      return ok(
        'store.file',
        `${file} can be opened and written; ${seen.isEmpty ? 'nobody owns a thread yet' : 'it has owners of threads'}`,
      )
  }
}

function durable(file: string, mounts: string): Finding {
  if (mounts === '') return notChecked('store.durable', 'this machine does not tell its mounts')
  if (!existsSync(dirname(file))) return notChecked('store.durable', `the folder of ${file} is not there yet`)
  const fate = lostWith(file, mounts)
  if (fate === null) return ok('store.durable', 'the store outlives the process, as far as its mount tells')
  return problem(
    'store.durable',
    `${file} is lost with ${fate}: threads then have no owner any more`,
    'put it on a volume, and name that in ownership.store',
  )
}
