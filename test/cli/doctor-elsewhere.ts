/** The doctor on a machine whose disk keeps what is written, whatever this one's does. */
import { doctorOn } from '../../src/cli/doctor.ts'
import { QUIET } from '../doctor/machine.ts'

process.exitCode = await doctorOn(() => QUIET).run(process.argv.slice(2))
