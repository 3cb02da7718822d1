import { setFlagsFromString } from 'node:v8'

/** Node 22 to 26 know all of them. V8 reports an unknown option on stderr, so the version is checked first. */
const OPTIONS = [
  /*
   * V8 guesses which objects live long from those that its first collections find in use. In a proxy these belong to the requests in
   * progress, so the guess is wrong, and it stays: from then on every request occupies memory until a full collection. Some processes
   * had it from their start: collections of 14 to 50 ms instead of 2 to 4 ms, and a heap of 200 MB instead of 75 MB.
   */
  '--no-allocation-site-pretenuring',
  /*
   * 100 s after the last full collection, V8's memory reducer makes another one. It also frees the hidden classes that no object has
   * at that moment, such as those of requests. V8 then discards the optimized code that depends on them, which is nearly all: the
   * next requests took four to five times the CPU. A running process can switch off its collections, but not the reducer.
   */
  '--memory-reducer-gc-count=0',
  /*
   * A process whose memory reducer is done makes a full collection whenever its old objects and its new buffers have grown by 30 %,
   * here 12 MB. The requests between two young collections allocate as much, so some processes made full collections all the time.
   * V8 itself takes up to 300 % in a busy process. 200 % took the same CPU as 100 %, and 20 MiB more. The heap never grows further
   * than half way to its maximum.
   */
  '--heap-growing-percent=100',
]

/** Sets the options of V8 for a process that serves. Call it before anything large is imported. */
export function setV8Options(): void {
  for (const option of OPTIONS) setFlagsFromString(option)
}
