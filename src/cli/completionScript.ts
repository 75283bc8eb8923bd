/** What a shell needs to complete our commands, options and the names of agents. */

export interface CompletedCommand {
  name: string;
  description: string;
  /** Its own commands and options. */
  words: readonly string[];
}

/** The first column of `telos agents`, without its heading. */
const agentNames = "telos agents 2>/dev/null | awk 'NR > 1 { print $1 }'";

/** A script to be read by the shell; `options` are those before any command. */
export function completionScript(
  shell: 'bash' | 'zsh' | 'fish',
  commands: readonly CompletedCommand[],
  options: readonly string[],
): string {
  if (shell === 'fish') return fishScript(commands, options);
  const script = bashScript(commands, options);
  return shell === 'bash' ? script : `autoload -U +X bashcompinit && bashcompinit\n${script}`;
}

function bashScript(commands: readonly CompletedCommand[], options: readonly string[]): string {
  const cases = commands.map(({ name, words }) => `    ${name}) words="${words.join(' ')}" ;;`);
  const first = [...commands.map(command => command.name), ...options].join(' ');
  return `_telos() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words
  case "$previous" in
    --agent) COMPREPLY=($(compgen -W "$(${agentNames})" -- "$current")); return ;;
    --cwd) COMPREPLY=($(compgen -d -- "$current")); return ;;
    --record|--replay) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
    *) words="${first}" ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _telos telos
`;
}

function fishScript(commands: readonly CompletedCommand[], options: readonly string[]): string {
  const lines = ['complete -c telos -f'];
  for (const { name, description, words } of commands) {
    lines.push(`complete -c telos -n __fish_use_subcommand -a ${name} -d '${quoted(description)}'`);
    for (const word of words) {
      const what = word.startsWith('--') ? `-l ${word.slice(2)}` : `-a ${word}`;
      lines.push(`complete -c telos -n '__fish_seen_subcommand_from ${name}' ${what}`);
    }
  }
  for (const option of options)
    lines.push(`complete -c telos -n __fish_use_subcommand ${fishOption(option)}`);
  return `${lines.join('\n')}\n`;
}

function fishOption(option: string): string {
  const name = option.slice(2);
  if (name === 'agent') return `-l agent -x -a '(${quoted(agentNames)})'`;
  return ['cwd', 'record', 'replay'].includes(name) ? `-l ${name} -r -F` : `-l ${name}`;
}

const quoted = (text: string): string => text.replaceAll("'", "\\'");
