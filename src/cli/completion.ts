/** `threadwarden completion`: prints a completion script, written from the declarations of the commands. */
import { defineCommand, EXIT, UsageError, type Command, type CommandGroup } from './command.ts'
import { printLines } from './terminal.ts'

/** Words that may follow a path such as `threads list`, with their help. */
interface Step {
  readonly path: string
  readonly words: Readonly<Record<string, string>>
  readonly options: Command['options']
}

const SHELLS = ['bash', 'zsh', 'fish']

export function completionFor(program: CommandGroup): Command {
  return defineCommand({
    usage: ['bash|zsh|fish'],
    about: `Prints a completion script for a shell.

bash: add this line to ~/.bashrc: source <(threadwarden completion bash)

zsh: add this line to ~/.zshrc, after compinit: source <(threadwarden completion zsh)

fish: threadwarden completion fish > ~/.config/fish/completions/threadwarden.fish`,
    positionals: { SHELL: 'bash, zsh or fish' },
    options: {},
    exitCodes: { 0: 'printed', 1: 'failed' },
    examples: ['threadwarden completion bash', 'threadwarden completion fish > ~/.config/fish/completions/threadwarden.fish'],

    async run(_values, terminal, [shell = '', ...more]) {
      const script = Object.hasOwn(SCRIPTS, shell) && more.length === 0 ? SCRIPTS[shell] : undefined
      if (script === undefined) throw new UsageError('name one shell: bash, zsh or fish')
      printLines(terminal, script(await stepsOf(program, '')))
      return EXIT.fine
    },
  })
}

async function stepsOf({ commands }: CommandGroup, path: string): Promise<readonly Step[]> {
  const words = Object.fromEntries(Object.entries(commands).map(([name, { summary }]) => [name, summary]))
  const below = Object.entries(commands).map(async ([name, found]) => {
    const named = `${path}${name} `
    if ('commands' in found) return stepsOf(found, named)
    const { positionals = {}, options } = (await found.load()).command
    // The shells are the only positional whose values are known.
    const values = 'SHELL' in positionals ? Object.fromEntries(SHELLS.map((shell) => [shell, `the script for ${shell}`])) : {}
    return [{ path: named, words: values, options }]
  })
  return [{ path, words, options: {} }, ...(await Promise.all(below)).flat()]
}

/** Where no word fits, `-o default` completes the names of files. */
function bash(steps: readonly Step[]): string {
  const cases = steps.map(({ path, words, options }) => {
    const flags = Object.entries(options).flatMap(([name, { short }]) => [
      `--${name}`,
      ...(short === undefined ? [] : [`-${short}`]),
    ])
    return Object.keys(words).length > 0
      ? `    '${path === '' ? ' ' : path}') found='${Object.keys(words).join(' ')}' ;;`
      : `    '${path}'*) [[ $current == -* ]] && found='${[...flags, '--help'].join(' ')}' ;;`
  })
  return `_threadwarden() {
  local current="\${COMP_WORDS[COMP_CWORD]}" found=''
  case "\${COMP_WORDS[*]:1:$((COMP_CWORD - 1))} " in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$found" -- "$current"))
}
complete -o default -F _threadwarden threadwarden`
}

function fish(steps: readonly Step[]): string {
  const quoted = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const lines = steps.flatMap(({ path, words, options }) => [
    ...Object.entries(words).map(([word, help]) => `${quoted(path)}" -f -a ${word} -d ${quoted(help)}`),
    ...Object.entries(options).map(
      ([name, { type, short, help }]) =>
        `${quoted(`${path}*`)}" -l ${name}${short === undefined ? '' : ` -s ${short}`}${type === 'string' ? ' -r' : ''} -d ${quoted(help)}`,
    ),
  ])
  return `function __threadwarden_after
  set -l words (commandline -opc)
  string match -q -- $argv[1] (string join ' ' $words[2..] '')
end
${lines.map((line) => `complete -c threadwarden -n "__threadwarden_after ${line}`).join('\n')}`
}

const SCRIPTS: Readonly<Record<string, (steps: readonly Step[]) => string>> = {
  bash,
  zsh: (steps) => `autoload -U +X bashcompinit && bashcompinit\n${bash(steps)}`,
  fish,
}
