/** The words in the source of a runtime: candidates to ask it with. Only its answers count. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

export interface Dictionary {
  /** Words of modules that compare segments of paths. */
  readonly routerWords: readonly string[]
  /** Words of all modules. */
  readonly words: readonly string[]
  /** Texts that could be methods of an envelope. */
  readonly texts: readonly string[]
  /** What modules that know routes call a route. */
  readonly labels: readonly string[]
}

/** Words that each runtime compares, by which its router is found. */
const ROUTER_WORDS = ['agent', 'run', 'connect', 'stop', 'threads', 'archive', 'subscribe']
const LABELS = ['agent/run', 'agent/connect', 'agent/stop']

/** How many of them make a module one that knows routes. */
const ENOUGH = 3

const WORD = /^[A-Za-z][\w.-]{0,39}$/
const LABEL = /^[a-z][a-z0-9-]*(?:\/[a-z][a-z0-9-]*)+$/
const MEDIA_TYPE = /^(?:application|audio|font|image|message|multipart|text|video)\//

export function readDictionary(folder: string): Dictionary {
  const files = globSync('**/*.mjs', { cwd: folder })
  const modules = files.map((file) => literalsOf(readFileSync(join(folder, file), 'utf8')))
  const router = modules.filter(
    (texts) => ROUTER_WORDS.filter((word) => texts.has(word) || texts.has(`/${word}`)).length >= ENOUGH,
  )
  const knowing = modules.filter((texts) => LABELS.filter((label) => texts.has(label)).length >= ENOUGH)
  const all = new Set(modules.flatMap((texts) => [...texts]))
  const labels = knowing.flatMap((texts) => [...texts].filter((text) => LABEL.test(text) && !MEDIA_TYPE.test(text)))
  return {
    routerWords: wordsOf(router.flatMap((texts) => [...texts])),
    words: wordsOf([...all]),
    texts: [...all].filter((text) => /^[A-Za-z][\w./:-]{0,60}$/.test(text)),
    labels: [...new Set(labels)],
  }
}

function wordsOf(texts: readonly string[]): readonly string[] {
  return [...new Set(texts.flatMap((text) => text.split('/')).filter((word) => WORD.test(word)))]
}

function literalsOf(source: string): ReadonlySet<string> {
  const texts = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) texts.add(node.text)
    // An object may be a table of routes.
    else if (ts.isPropertyAssignment(node) && ts.isIdentifier(node.name)) texts.add(node.name.text)
    else if (ts.isRegularExpressionLiteral(node)) {
      for (const word of node.text.split(/[^\w.-]+/)) texts.add(word)
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile('module.mjs', source, ts.ScriptTarget.ESNext, false, ts.ScriptKind.JS))
  return texts
}

/** The members of the type `RuntimeInfo`, which has those that only some configurations give. */
export function declaredInfo(folder: string): readonly string[] {
  const names = new Set<string>()
  for (const file of globSync('**/*.d.{mts,ts}', { cwd: folder })) {
    const source = readFileSync(join(folder, file), 'utf8')
    if (!source.includes('interface RuntimeInfo ')) continue
    const visit = (node: ts.Node): void => {
      if (ts.isInterfaceDeclaration(node) && node.name.text === 'RuntimeInfo') {
        for (const { name } of node.members) if (name !== undefined && ts.isIdentifier(name)) names.add(name.text)
      }
      ts.forEachChild(node, visit)
    }
    visit(ts.createSourceFile(file, source, ts.ScriptTarget.ESNext, false))
  }
  return [...names]
}
