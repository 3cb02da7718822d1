/** What `threadwarden init` cannot find out, with what to do about it. */
export class NotFound extends Error {
  override readonly name: string = 'NotFound'
  readonly remedy: string
  constructor(message: string, remedy: string) {
    super(message)
    this.remedy = remedy
  }
}

/** A server answers, but does not show that it is a runtime: it may be an agent. */
export class NotRuntime extends NotFound {
  override readonly name = 'NotRuntime'
}
