import type { Run } from './command.ts'
import { completionNames } from './completion-names.ts'
import { print, readLine, UsageError } from './usage.ts'

const HELP = `Usage: dragoman completion bash|zsh|fish

Prints a script that completes commands, actions, flags, files, clients, and while a daemon runs its servers, tools, prompts
and their arguments. Activate it in the configuration of your shell:

  bash   eval "$(dragoman completion bash)"                                      in ~/.bashrc
  zsh    eval "$(dragoman completion zsh)"                                       in ~/.zshrc, after compinit
  fish   dragoman completion fish > ~/.config/fish/completions/dragoman.fish

`

/** The first words of indented lines of a help text: its commands or actions. */
const WORDS = `sed -n 's/^  \\([a-z][a-z-]*\\) .*/\\1/p'`
const FLAGS = `grep -oE -- '^  (-h, )?--[a-z-]+' | sed 's/.*--/--/'`
const NAMES = 'dragoman completion names --'

// Commands and flags are read from the help texts, so they are never out of date.
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_dragoman() {
  local word="\${COMP_WORDS[COMP_CWORD]}" names
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$(dragoman --help | ${WORDS})" -- "$word"))
  elif [ "\${word#-}" != "$word" ]; then
    COMPREPLY=($(compgen -W "$(dragoman "\${COMP_WORDS[1]}" --help | ${FLAGS})" -- "$word"))
  else
    names="$(${NAMES} "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)"
    [ "$COMP_CWORD" -eq 2 ] && names="$names $(dragoman "\${COMP_WORDS[1]}" --help | ${WORDS})"
    COMPREPLY=($(compgen -W "$names" -- "$word") $(compgen -f -- "$word"))
    case "\${COMPREPLY[0]}" in *=) type compopt >/dev/null 2>&1 && compopt -o nospace 2>/dev/null ;; esac
  fi
  return 0
}
complete -o filenames -F _dragoman dragoman
`,
  zsh: `_dragoman() {
  local -a names
  if (( CURRENT == 2 )); then
    compadd -- \${(f)"$(dragoman --help | ${WORDS})"}
  elif [[ $words[CURRENT] == -* ]]; then
    compadd -- \${(f)"$(dragoman $words[2] --help | ${FLAGS})"}
  else
    names=(\${(f)"$(${NAMES} \${words[2,CURRENT-1]} 2>/dev/null)"})
    compadd -S '' -- \${(M)names:#*=}
    compadd -- \${names:#*=}
    (( CURRENT == 3 )) && compadd -- \${(f)"$(dragoman $words[2] --help | ${WORDS})"}
    _files
  fi
}
compdef _dragoman dragoman
`,
  fish: `function __dragoman_words
  set -l words (commandline -opc)
  if test (count $words) -eq 1
    dragoman --help | ${WORDS}
  else
    ${NAMES} $words[2..-1] 2>/dev/null
    test (count $words) -eq 2; and dragoman $words[2] --help | ${WORDS}
    dragoman $words[2] --help | ${FLAGS}
  end
end
complete -c dragoman -n 'test (count (commandline -opc)) -eq 1' -f -a '(__dragoman_words)'
complete -c dragoman -n 'test (count (commandline -opc)) -gt 1' -a '(__dragoman_words)'
`,
}

/** Prints the completion script of a shell, or for such a script what may follow the words after "names". */
export const run: Run = async (args, context) => {
  const { flags, words } = readLine(args, {})
  const [shell = '', ...rest] = words
  if (flags.help) return print(HELP)
  if (shell === 'names') return print((await completionNames(rest, context)).map(name => `${name}\n`).join(''))
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (script === undefined) throw new UsageError(`expected the name of a shell: ${Object.keys(SCRIPTS).join(', ')}`)
  if (rest[0] !== undefined) throw new UsageError(`Unexpected argument '${rest[0]}'`)
  return print(script)
}
