/** Measures several things in turns, so that a machine that drifts moves all of them alike. */

/** Something to be measured. */
export interface Subject {
  /** Does it once. */
  run(): Promise<unknown>
  /** How many are done at the same time. */
  readonly width: number
  /** Comes before each round, and is not measured. */
  prepare?(): Promise<unknown>
  /** Microseconds of CPU that others have spent on it so far; null if nobody knows. */
  otherCpu?(): Promise<number | null>
}

/** How it went. Times are in microseconds. */
export interface Measured {
  readonly count: number
  readonly p50: number
  readonly p99: number
  /** Of this process, for each; what measuring takes is in it, well below a microsecond. */
  readonly cpu: number
  readonly otherCpu: number | null
  readonly perSecond: number
}

/** How long it takes. */
export interface Effort {
  /** For each subject, after the first round, which does not count: things are compiled, planned and read from the disk then. */
  readonly seconds: number
  /** The number of the round that begins, from 0 on. */
  readonly tell: (round: number) => void
}

/** Rounds that count. */
export const ROUNDS = 10

interface Sum {
  readonly times: number[]
  cpu: number
  otherCpu: number | null
  wall: number
}

/** Measures. @returns what came of each, in the order of the subjects */
export async function measure(subjects: readonly Subject[], { seconds, tell }: Effort): Promise<readonly Measured[]> {
  const sums = subjects.map((): Sum => ({ times: [], cpu: 0, otherCpu: 0, wall: 0 }))
  for (let round = 0; round <= ROUNDS; round += 1) {
    tell(round)
    for (const [at, subject] of subjects.entries()) {
      const slice = await runFor((1000 * seconds) / ROUNDS, subject)
      if (round > 0) add(sums[at]!, slice)
      // Timers and sockets get their turn: some of what is measured never waits for anything.
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }
  return sums.map(measuredOf)
}

async function runFor(milliseconds: number, subject: Subject): Promise<Sum> {
  await subject.prepare?.()
  const times: number[] = []
  const otherBefore = (await subject.otherCpu?.()) ?? null
  const before = process.cpuUsage()
  const began = performance.now()
  const runOneAfterTheOther = async (): Promise<void> => {
    for (let from = performance.now(); from - began < milliseconds || times.length === 0;) {
      await subject.run()
      const to = performance.now()
      times.push(1000 * (to - from))
      from = to
    }
  }
  await Promise.all(Array.from({ length: subject.width }, runOneAfterTheOther))
  const wall = performance.now() - began
  const { user, system } = process.cpuUsage(before)
  const otherAfter = (await subject.otherCpu?.()) ?? null
  const otherCpu = otherBefore === null || otherAfter === null ? null : otherAfter - otherBefore
  return { times, cpu: user + system, otherCpu, wall }
}

function add(sum: Sum, { times, cpu, otherCpu, wall }: Sum): void {
  for (const time of times) sum.times.push(time)
  sum.cpu += cpu
  sum.otherCpu = sum.otherCpu === null || otherCpu === null ? null : sum.otherCpu + otherCpu
  sum.wall += wall
}

function measuredOf({ times, cpu, otherCpu, wall }: Sum): Measured {
  const sorted = Float64Array.from(times).sort()
  const quantile = (part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
  const each = (sum: number): number => sum / times.length
  return {
    count: times.length,
    p50: quantile(0.5),
    p99: quantile(0.99),
    cpu: each(cpu),
    otherCpu: otherCpu === null ? null : each(otherCpu),
    perSecond: (1000 * times.length) / wall,
  }
}
