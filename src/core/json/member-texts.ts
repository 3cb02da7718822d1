/** Keeps the text of the members of an object while it is read in steps (json/read-in-steps.ts), each as JSON.stringify would write it. */

/** The text of a member: in pieces, or of an object that was opened, its members. */
export type MemberText = readonly string[] | MemberTexts

/** The text of the members of an object. */
export type MemberTexts = ReadonlyMap<string, MemberText>

/** A text of so many characters is a piece. */
const PIECE = 32 * 1024

/** Records the members of the object that is read, and of some objects in it. */
export class MemberRecorder {
  readonly texts = new Map<string, MemberText>()
  readonly #opened: ReadonlySet<string>
  /** The objects that lie in one another whose members are recorded, from the outermost on. */
  readonly #into: Map<string, MemberText>[] = [this.texts]
  /** Of the member that is being recorded: the depth of its object, or 0 where none is. */
  #depth = 0
  #pieces: string[] = []
  #pending = ''
  /** From here on the slice has not been taken over yet. */
  #from = 0

  /** @param opened paths of objects whose members are recorded each by itself: names with a `/` between them */
  constructor(opened: readonly string[]) {
    this.#opened = new Set(opened)
  }

  /**
   * A value begins.
   * @param at where it does in the slice
   * @param depth how many containers are open around it
   * @param keys the key in each of these that is an object
   */
  begin(at: number, depth: number, keys: readonly string[], isObject: boolean): void {
    const into = this.#into[depth - 1]
    if (this.#depth > 0 || depth !== this.#into.length || into === undefined) return
    const key = keys[depth - 1] ?? ''
    if (isObject && this.#opened.has(keys.slice(0, depth).join('/'))) {
      const texts = new Map<string, MemberText>()
      into.set(key, texts)
      this.#into.push(texts)
      return
    }
    this.#depth = depth
    this.#from = at
    this.#pieces = []
    into.set(key, this.#pieces)
  }

  /** Something of the slice stands otherwise than JSON.stringify would write it. */
  replace(slice: string, begin: number, end: number, by: string): void {
    if (this.#depth === 0) return
    this.#take(slice.slice(this.#from, begin) + by)
    this.#from = end
  }

  /** The next slice begins with what stands in this one from a place on. */
  cut(slice: string, at: number): void {
    if (this.#depth === 0) return
    this.#take(slice.slice(this.#from, at))
    this.#from = 0
  }

  /** A value has ended. */
  end(slice: string, at: number, depth: number): void {
    if (depth > 0 && this.#depth === depth) {
      this.#pieces.push(this.#pending + slice.slice(this.#from, at))
      this.#pending = ''
      this.#depth = 0
    } else if (this.#depth === 0 && this.#into.length > Math.max(depth, 1)) this.#into.pop()
  }

  #take(text: string): void {
    this.#pending += text
    if (this.#pending.length < PIECE) return
    this.#pieces.push(this.#pending)
    this.#pending = ''
  }
}
