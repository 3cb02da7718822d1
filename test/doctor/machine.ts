/** A machine to be examined on. */
import type { Machine } from '../../src/tools/doctor/subject.ts'

/** On its disk everything lasts, and nobody reaches it from elsewhere. */
export const QUIET: Machine = { mounts: '1 0 8:1 / / rw - ext4 /dev/sda1 rw', addresses: [] }
