/** The parts of a file that a person reads, with everything else blanked out, so that places stay as they are. */
import ts from 'typescript'

/** Replaces a text by spaces, line by line. */
export function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ')
}

/** A Markdown page without code, addresses and HTML comments. */
export function markdownText(text: string): string {
  return text
    .replaceAll(/^( *)```[^]*?^ *```$/gm, blank)
    .replaceAll(/<!--[^]*?-->/g, blank)
    .replaceAll(/`[^`\n]+`/g, blank)
    .replaceAll(/\]\([^)\n]*\)/g, blank)
}

/** The comments of a YAML file, and its values of several words. */
export function yamlText(text: string): string {
  return text.replaceAll(/^.*$/gm, (line) => {
    const at = line.search(/(?:^|\s)#/)
    return at === -1 ? blank(line) : blank(line.slice(0, at)) + line.slice(at)
  })
}

/** The comments of a TypeScript file, and its strings of more than one word. */
export function typescriptText(name: string, text: string): string {
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)
  const parts: [start: number, end: number][] = []
  const visit = (node: ts.Node): void => {
    const children = node.getChildren(source)
    if (children.length > 0) {
      children.forEach(visit)
      return
    }
    // Between the end of a token and the start of the next one there are only spaces and comments.
    parts.push([node.getFullStart(), node.getStart(source, false)])
    const isText = ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)
    if (isText && node.text.trim().includes(' ')) parts.push([node.getStart(source), node.getEnd()])
  }
  visit(source)
  let whole = ''
  for (const [start, end] of parts)
    whole += blank(text.slice(whole.length, start)) + text.slice(start, end).replaceAll(/`[^`\n]+`/g, blank)
  return whole + blank(text.slice(whole.length))
}

/** The parts of a file to look at, by its kind. */
export function textOf(name: string, text: string): string {
  if (name.endsWith('.md')) return markdownText(text)
  return name.endsWith('.ts') ? typescriptText(name, text) : yamlText(text)
}

/** The sentences of a page: no tables, headings or code. An item of a list has sentences of its own. */
export function sentences(page: string): readonly string[] {
  const prose = page
    .replaceAll(/^( *)```[^]*?^ *```$/gm, '\n')
    .replaceAll(/<!--[^]*?-->/g, '')
    .replaceAll(/\]\([^)\n]*\)/g, ']')
    .replaceAll(/^(?:#+ |\||!\[).*$/gm, '\n')
    .replaceAll(/^\s*(?:[-*]|\d+\.) /gm, '\n\n')
  return prose
    .split(/\n\s*\n/)
    .flatMap((paragraph) => paragraph.split(/(?<=[.!?])["')\]*]*\s+(?=["'([*`]*[A-Z`\d])/))
    .map((sentence) => sentence.trim())
    .filter((sentence) => wordsOf(sentence) >= 3)
}

/** How many words a sentence has; code in backticks is one. */
export function wordsOf(sentence: string): number {
  return sentence.replaceAll(/`[^`]+`/g, 'code').match(/[\p{L}\p{N}][^\s]*/gu)?.length ?? 0
}

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}
