import type { Run } from './command.ts'
import { print, readLine, UsageError } from './usage.ts'

const HELP = `Usage: dragoman completion bash|zsh|fish

Prints a script that completes commands, actions, flags and files. Activate it in the configuration of your shell:

  bash   eval "$(dragoman completion bash)"                                      in ~/.bashrc
  zsh    eval "$(dragoman completion zsh)"                                       in ~/.zshrc, after compinit
  fish   dragoman completion fish > ~/.config/fish/completions/dragoman.fish

`

/** The first words of indented lines of a help text: its commands or actions. */
const WORDS = `sed -n 's/^  \\([a-z][a-z-]*\\) .*/\\1/p'`
const FLAGS = `grep -oE -- '^  (-h, )?--[a-z-]+' | sed 's/.*--/--/'`

// Commands and flags are read from the help texts, so they are never out of date.
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_dragoman() {
  local word="\${COMP_WORDS[COMP_CWORD]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "$(dragoman --help | ${WORDS})" -- "$word"))
  elif [ "\${word#-}" != "$word" ]; then
    COMPREPLY=($(compgen -W "$(dragoman "\${COMP_WORDS[1]}" --help | ${FLAGS})" -- "$word"))
  elif [ "$COMP_CWORD" -eq 2 ]; then
    COMPREPLY=($(compgen -W "$(dragoman "\${COMP_WORDS[1]}" --help | ${WORDS})" -- "$word") $(compgen -f -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _dragoman dragoman
`,
  zsh: `_dragoman() {
  if (( CURRENT == 2 )); then
    compadd -- \${(f)"$(dragoman --help | ${WORDS})"}
  elif [[ $words[CURRENT] == -* ]]; then
    compadd -- \${(f)"$(dragoman $words[2] --help | ${FLAGS})"}
  else
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
    test (count $words) -eq 2; and dragoman $words[2] --help | ${WORDS}
    dragoman $words[2] --help | ${FLAGS}
  end
end
complete -c dragoman -n 'test (count (commandline -opc)) -eq 1' -f -a '(__dragoman_words)'
complete -c dragoman -n 'test (count (commandline -opc)) -gt 1' -a '(__dragoman_words)'
`,
}

/** Prints the completion script of a shell. */
export const run: Run = async args => {
  const { flags, words } = readLine(args, {}, 1)
  if (flags.help) return print(HELP)
  const [shell = ''] = words
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (script !== undefined) return print(script)
  throw new UsageError(`expected the name of a shell: ${Object.keys(SCRIPTS).join(', ')}`)
}
