/** Parts that the views share: asking again and again, confirmation, and how times and rules are written. */
import type { ComponentChildren } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask, Refused, type Rule } from './api.ts'

const AGAIN_MS = 2000

interface Polled<Answer> {
  readonly answer: Answer | null
  readonly fault: string | null
  readonly again: () => void
}

let endSession = (): void => {}

/** Called when an answer says that the session is over. */
export function onSessionEnd(act: () => void): void {
  endSession = act
}

export function faultText(error: unknown): string {
  if (error instanceof Refused && error.status === 401) endSession()
  if (error instanceof Refused) return error.message
  return 'The gateway cannot be reached.'
}

/** Asks every two seconds while the page is visible; an empty path asks nothing. */
export function usePolled<Answer>(path: string, repeat = true): Polled<Answer> {
  const [state, setState] = useState<{ path: string; answer: Answer | null; fault: string | null }>({
    path,
    answer: null,
    fault: null,
  })
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    if (path === '') return
    let over = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const look = async (): Promise<void> => {
      if (!document.hidden) {
        try {
          const answer = await ask<Answer>(path)
          if (!over) setState({ path, answer, fault: null })
        } catch (error) {
          if (!over)
            setState((before) => ({ path, answer: before.path === path ? before.answer : null, fault: faultText(error) }))
        }
      }
      if (!over && repeat) timer = setTimeout(() => void look(), AGAIN_MS)
    }
    void look()
    return () => {
      over = true
      clearTimeout(timer)
    }
  }, [path, repeat, turn])
  const again = useCallback(() => setTurn((before) => before + 1), [])
  return state.path === path ? { ...state, again } : { answer: null, fault: null, again }
}

export function Fault({ text }: { readonly text: string | null }) {
  return text === null ? null : (
    <p class="fault" role="alert">
      {text}
    </p>
  )
}

export function Time({ at }: { readonly at: string | null }) {
  if (at === null) return <>–</>
  return (
    <time dateTime={at} title={at}>
      {new Date(at).toLocaleString()}
    </time>
  )
}

export function RuleText({ rule }: { readonly rule: Rule | null }) {
  if (rule === null) return <>no rule</>
  return (
    <span title={rule.file}>
      {rule.name} <small>{`${fileName(rule.file)}${rule.line === null ? '' : `:${rule.line}`}`}</small>
    </span>
  )
}

function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

export function PolicyFile({ file, hash }: { readonly file: string; readonly hash: string }) {
  return (
    <span title={file}>
      {fileName(file)} <code title={hash}>{hash.slice(0, 16)}</code>
    </span>
  )
}

export function Facts({ of }: { readonly of: Readonly<Record<string, unknown>> | null }) {
  if (of === null) return <p>–</p>
  return (
    <dl>
      {Object.entries(of).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
        </div>
      ))}
    </dl>
  )
}

/** The first row of a table. */
export function Head({ names }: { readonly names: readonly string[] }) {
  return (
    <thead>
      <tr>
        {names.map((name) => (
          <th scope="col" key={name}>
            {name}
          </th>
        ))}
      </tr>
    </thead>
  )
}

interface ConfirmedProps {
  readonly label: string
  /** What will happen, as a question. */
  readonly question: string
  readonly act: () => Promise<unknown>
  readonly onDone: () => void
  readonly disabled?: boolean
  readonly children?: ComponentChildren
}

/** A button that asks before it acts. */
export function Confirmed({ label, question, act, onDone, disabled = false, children }: ConfirmedProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [fault, setFault] = useState<string | null>(null)
  const confirm = async (event: Event): Promise<void> => {
    event.preventDefault()
    try {
      await act()
      dialog.current?.close()
      onDone()
    } catch (error) {
      setFault(faultText(error))
    }
  }
  const open = (): void => {
    setFault(null)
    dialog.current?.showModal()
  }
  return (
    <>
      <button type="button" disabled={disabled} onClick={open}>
        {label}
      </button>
      <dialog ref={dialog} aria-label={label}>
        <form onSubmit={(event) => void confirm(event)}>
          <p>{question}</p>
          {children}
          <Fault text={fault} />
          <p class="buttons">
            <button type="submit" class="danger">
              {label}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
          </p>
        </form>
      </dialog>
    </>
  )
}

interface FieldProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  /** Suggested values. */
  readonly list?: readonly string[]
  readonly required?: boolean
}

export function Field({ label, value, onChange, list = [], required = false }: FieldProps) {
  const id = `list-${label.toLowerCase().replaceAll(' ', '-')}`
  return (
    <label>
      {label}
      <input
        value={value}
        required={required}
        autocomplete="off"
        spellcheck={false}
        list={id}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
      <datalist id={id}>
        {list.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </label>
  )
}
