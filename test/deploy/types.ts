/** Checks objects against the types of Kubernetes and of the custom resources: values by their schemas, keys by TypeScript. */
import { join } from 'node:path'
import ts from 'typescript'
import { PACKAGES, module } from './tools.ts'
import type { KubernetesObject } from './objects.ts'

const CUSTOM: Readonly<Record<string, string>> = {
  'monitoring.coreos.com': '@kubernetes-models/prometheus-operator',
  'gateway.networking.k8s.io': '@kubernetes-models/gateway-api',
  'cert-manager.io': '@kubernetes-models/cert-manager',
}

function moduleOf({ apiVersion, kind }: KubernetesObject): string {
  const [group = ''] = apiVersion.split('/')
  return `${CUSTOM[group] ?? 'kubernetes-models'}/${apiVersion}/${kind}`
}

/** What is checked together, since a program of TypeScript takes seconds. */
export interface Named {
  /** Where the object is from, for the message. */
  readonly from: string
  readonly object: KubernetesObject
}

/** Every error of the objects, one line each. */
export async function typeErrors(all: readonly Named[]): Promise<readonly string[]> {
  return [...(await valueErrors(all)), ...keyErrors(all)]
}

interface Model {
  validate(): void
}

async function valueErrors(all: readonly Named[]): Promise<readonly string[]> {
  const errors: string[] = []
  for (const { from, object } of all) {
    try {
      const models = await module(`${moduleOf(object)}.js`)
      const Kind = models[object.kind] as new (data: KubernetesObject) => Model
      new Kind(object).validate()
    } catch (error) {
      errors.push(`${from}: ${object.kind} ${object.metadata.name}: ${(error as Error).message}`)
    }
  }
  return errors
}

/** The schemas accept unknown keys. TypeScript does not, in a literal. */
function keyErrors(all: readonly Named[]): readonly string[] {
  const file = join(PACKAGES, 'manifests.ts')
  const lines = all.map(({ object }, at) => {
    const type = `import('${moduleOf(object)}').I${object.kind}`
    return `export const object${at}: ${type} = ${JSON.stringify(object)}`
  })
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2024,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    strict: true,
    skipLibCheck: true,
    noEmit: true,
    types: [],
  }
  const host = ts.createCompilerHost(options)
  const text = lines.join('\n')
  const program = ts.createProgram([file], options, {
    ...host,
    getSourceFile: (name, ...rest) =>
      name === file ? ts.createSourceFile(name, text, ts.ScriptTarget.ES2024) : host.getSourceFile(name, ...rest),
    fileExists: (name) => name === file || host.fileExists(name),
    readFile: (name) => (name === file ? text : host.readFile(name)),
  })
  return ts.getPreEmitDiagnostics(program).map(({ file: source, start, messageText }) => {
    const message = ts.flattenDiagnosticMessageText(messageText, ' ')
    if (source === undefined || start === undefined || source.fileName !== file) return message
    const { from, object } = all[source.getLineAndCharacterOfPosition(start).line]!
    return `${from}: ${object.kind} ${object.metadata.name}: ${message}`
  })
}
