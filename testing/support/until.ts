/** Waiting for something to become so, where no event tells of it. The test's own time-out is the only bound. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 2))
}

/** A promise that the test keeps when it likes. */
export function deferred<T = void>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  const { promise, resolve } = Promise.withResolvers<T>()
  return { promise, resolve }
}
