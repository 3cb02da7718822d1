/**
 * What a test file imports as `tap` where files share a process (run-files.ts): its tests belong to the test of the file, which is
 * named after it, and not to the one root that tap has for each process.
 */
import { t as root, type Test } from 'tap'

let current: Test = root

/** From here on, what a file that is imported says to tap is said to this test. */
export function enter(file: Test): void {
  current = file
}

/** Asked at the time of the call, because files take what they call out of it when they are loaded. */
function ofCurrent(_: Test, name: string | symbol): unknown {
  const value: unknown = Reflect.get(current, name)
  return typeof value === 'function'
    ? (...call: unknown[]) => Reflect.apply(Reflect.get(current, name) as never, current, call)
    : value
}

const tap = new Proxy<Test>(root, { get: ofCurrent, set: (_, name, value) => Reflect.set(current, name, value) })

/** What a file calls without `tap.`. */
export const after: Test['after'] = (...call) => current.after(...call)
export const before: Test['before'] = (...call) => current.before(...call)
export const end: Test['end'] = (...call) => current.end(...call)
export const test = Reflect.get<Test, 'test'>(tap, 'test')

export { tap, tap as t, tap as default }
