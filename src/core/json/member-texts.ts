/** Keeps the text of an object's members, each as JSON.stringify would write it, while json/read-in-steps.ts reads the object. */

export type MemberText = readonly string[] | MemberTexts

export type MemberTexts = ReadonlyMap<string, MemberText>

/** In characters. */
const PIECE = 32 * 1024

export class MemberRecorder {
  readonly texts = new Map<string, MemberText>()
  readonly #opened: ReadonlySet<string>
  readonly #into: Map<string, MemberText>[] = [this.texts]
  /** 0 if no member is being recorded. */
  #depth = 0
  #pieces: string[] = []
  #pending = ''
  #from = 0

  /** @param opened paths of objects whose members are recorded separately: names with a `/` between them */
  constructor(opened: readonly string[]) {
    this.#opened = new Set(opened)
  }

  /** @param keys the key in each open container that is an object; `depth` counts all open containers */
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

  /** A part of the slice differs from what JSON.stringify would write. */
  replace(slice: string, begin: number, end: number, by: string): void {
    if (this.#depth === 0) return
    this.#take(slice.slice(this.#from, begin) + by)
    this.#from = end
  }

  cut(slice: string, at: number): void {
    if (this.#depth === 0) return
    this.#take(slice.slice(this.#from, at))
    this.#from = 0
  }

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
