/** An operation of the admin API as data: the router, the checks of its requests and the OpenAPI document are made from it. */
import type { z } from 'zod'
import type { AdminRefusal, AdminRequest, Change } from './answers.ts'

export interface AnswerForm {
  readonly description: string
  /** Absent for an answer without a body. */
  readonly schema?: z.ZodType
}

export type AnswerForms = Readonly<Record<number, AnswerForm>>

/** Statuses of refusals that an operation may give, besides 401, 403 and 500. */
export type RefusalStatus = 400 | 404 | 413 | 415 | 503

export interface Operation<Body extends z.ZodType = z.ZodType, Answers extends AnswerForms = AnswerForms> {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** With `:id` for the only parameter. */
  readonly url: string
  /** `operationId` of the document. */
  readonly id: string
  /** `action` of the log line. */
  readonly action: string
  readonly summary: string
  /** The meaning of `:id`, if the URL has it. */
  readonly about?: string
  /** By name. Each may come once; any other name is refused. */
  readonly query?: Readonly<Record<string, z.ZodType>>
  readonly body?: Body
  /** False for a request with a body that changes nothing: viewers may send it. */
  readonly changes?: false
  /** In bytes; by default that of the listener, 4 KiB. */
  readonly bodyLimit?: number
  /** What to write in a body, for the author of a wrong one. */
  readonly form?: string
  readonly answers: Answers
  readonly refusals: readonly RefusalStatus[]
}

/** The answers that the forms allow, each with its status. */
export type AnswerOf<Answers extends AnswerForms> = {
  readonly [Status in keyof Answers & number]: {
    readonly status: Status
    readonly body: Answers[Status] extends { readonly schema: infer Schema extends z.ZodType } ? z.input<Schema> : null
    /** What became of a change, for the log; absent for a read. */
    readonly change?: Change
  }
}[keyof Answers & number]

/** An answer with the type of its status, which an object literal would lose. */
export function answer<const Status extends number, Body>(status: Status, body: Body): { status: Status; body: Body }
export function answer<const Status extends number, Body>(
  status: Status,
  body: Body,
  change: Change,
): { status: Status; body: Body; change: Change }
export function answer(status: number, body: unknown, change?: Change) {
  return change === undefined ? { status, body } : { status, body, change }
}

export type AddOperation = <Body extends z.ZodType, const Answers extends AnswerForms>(
  operation: Operation<Body, Answers>,
  /** @param read the body, by its schema */
  handle: (request: AdminRequest, read: () => z.output<Body> | AdminRefusal) => Promise<AnswerOf<Answers> | AdminRefusal>,
) => void
