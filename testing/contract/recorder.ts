/** Bodies that note which of their keys a handler reads. */

/** Every parser in this process gives the recording body for this text. */
const TEXT = '{"contract":"body"}'

/** A handler that copies every key reads this one, too. */
const DECOY = 'contractDecoy'

/** Read of any object by promises and by JSON. */
const OF_ANY_OBJECT = new Set(['then', 'catch', 'toJSON', 'constructor', 'length'])

export interface Reads {
  readonly named: Set<string>
  readsOthers: boolean
}

let current: object | null = null

/** Makes each parser of JSON in this process give the current body for its text. */
export function installRecorder(): void {
  const parse = JSON.parse.bind(JSON)
  const parseRecorded = (text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown =>
    text === TEXT && current !== null ? current : parse(text, reviver)
  JSON.parse = parseRecorded
  const json = async function json(this: Request): Promise<unknown> {
    return parseRecorded(await this.text())
  }
  Object.defineProperty(Request.prototype, 'json', { value: json, configurable: true, writable: true })
}

/** @param send sends this text as a body */
export async function recording(
  members: Readonly<Record<string, unknown>>,
  reads: Reads,
  send: (text: string) => Promise<void>,
): Promise<void> {
  // Handlers that refuse other keys read nothing of a body that has one.
  const target: Record<string, unknown> = Object.keys(members).length > 1 ? { ...members, [DECOY]: 'x' } : { ...members }
  const note = (key: string | symbol): void => {
    // A key that the body has may be read by a loop over all of them; one that it does not have is read by its name.
    if (typeof key === 'string' && !Object.hasOwn(target, key) && !OF_ANY_OBJECT.has(key) && !(key in Object.prototype)) {
      reads.named.add(key)
    }
  }
  current = new Proxy(target, {
    get(object, key) {
      if (key === DECOY && key in object) reads.readsOthers = true
      note(key)
      return Reflect.get(object, key) as unknown
    },
    has(object, key) {
      note(key)
      return Reflect.has(object, key)
    },
    getOwnPropertyDescriptor(object, key) {
      note(key)
      return Reflect.getOwnPropertyDescriptor(object, key)
    },
  })
  try {
    await send(TEXT)
  } finally {
    current = null
  }
}
