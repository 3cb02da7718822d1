/** The largest and the smallest of any number of numbers: as arguments of Math.max they would have to fit on the stack. */

export function largest(numbers: Iterable<number>): number {
  let most = Number.NEGATIVE_INFINITY
  for (const number of numbers) if (number > most) most = number
  return most
}

export function smallest(numbers: Iterable<number>): number {
  let least = Number.POSITIVE_INFINITY
  for (const number of numbers) if (number < least) least = number
  return least
}
