/** Keeps a console quiet while servers in this process complain about requests. */

const { error, warn } = console
let hushed = 0

/** Silences what a server says on the console of each request that it can't read. Gives what ends the silence. */
export function hush(): () => void {
  hushed += 1
  Object.assign(console, { error: () => {}, warn: () => {} })
  return () => {
    hushed -= 1
    if (hushed === 0) Object.assign(console, { error, warn })
  }
}
