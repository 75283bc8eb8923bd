/** Writes the script that lets a shell complete commands, options and the names of agents. */

export interface CompletedCommand {
  name: string;
  description: string;
  /** Its own commands and options. */
  words: readonly string[];
  /** Name of its first argument. Folders and agents are completed too. */
  argument: string | undefined;
}

/**
 * Prints the first column of `telos agents`, without its heading. Only plain names, since bash executes what it finds in
 * words to complete.
 */
const agentNames =
  "telos agents 2>/dev/null | awk -F '  +' 'NR > 1 && $1 ~ /^[A-Za-z0-9._-]+$/ { print $1 }'";

/**
 * Returns a script for the shell to read. `options` are the ones before any command. `withWord` are all options that take a
 * value.
 */
export function completionScript(
  shell: 'bash' | 'zsh' | 'fish',
  commands: readonly CompletedCommand[],
  options: readonly string[],
  withWord: readonly string[],
): string {
  if (shell === 'fish') return fishScript(commands, options, withWord);
  const script = bashScript(commands, options, withWord);
  return shell === 'bash' ? script : `autoload -U +X bashcompinit && bashcompinit\n${script}`;
}

const isOption = (word: string): boolean => word.startsWith('--');

/** A source is most often a folder; the other kinds are typed from a page. */
const takesFolder = (argument: string | undefined): boolean => argument === 'folder' || argument === 'source';
const folderOptions = ['--cwd', '--corpus'];
const fileOptions = ['--record', '--replay', '--pairs', '--packs', '--negatives', '--output'];

function bashScript(
  commands: readonly CompletedCommand[],
  options: readonly string[],
  withWord: readonly string[],
): string {
  const known = ['--agent', ...folderOptions, ...fileOptions];
  const unknown = withWord.filter(option => !known.includes(option));
  const cases = commands.map(({ name, words, argument }) => {
    const [dashed, plain] = [words.filter(isOption), words.filter(word => !isOption(word))];
    const list = [...plain, ...(argument === 'agent' ? [`$(${agentNames})`] : [])].join(' ');
    return `    ${name}) words="${list}" options="${dashed.join(' ')}"${takesFolder(argument) ? ' folders=-d' : ''} ;;`;
  });
  const first = commands.map(command => command.name).join(' ');
  return `_telos() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words options folders command
  [ "$COMP_CWORD" -gt 1 ] && command="\${COMP_WORDS[1]}"
  case "$previous" in
    --agent) COMPREPLY=($(compgen -W "$(${agentNames})" -- "$current")); return ;;
    ${folderOptions.join('|')}) COMPREPLY=($(compgen -d -- "$current")); return ;;
    ${fileOptions.join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
    ${unknown.join('|')}) COMPREPLY=(); return ;;
  esac
  case "$command" in
${cases.join('\n')}
    *) words="${first}" options="${options.join(' ')}" ;;
  esac
  # Options once a hyphen is there; among agents and folders they would be in the way.
  case "$current" in -*) words="$options" folders="" ;; esac
  COMPREPLY=($(compgen $folders -W "$words" -- "$current"))
}
complete -F _telos telos
`;
}

function fishScript(
  commands: readonly CompletedCommand[],
  options: readonly string[],
  withWord: readonly string[],
): string {
  const lines = ['complete -c telos -f'];
  for (const { name, description, words, argument } of commands) {
    lines.push(`complete -c telos -n __fish_use_subcommand -a ${name} -d '${quoted(description)}'`);
    if (takesFolder(argument)) lines.push(`complete -c telos -n '__fish_seen_subcommand_from ${name}' -F`);
    if (argument === 'agent')
      lines.push(`complete -c telos -n '__fish_seen_subcommand_from ${name}' -a '(${quoted(agentNames)})'`);
    for (const word of words) {
      const what = word.startsWith('--') ? fishOption(word, withWord) : `-a ${word}`;
      lines.push(`complete -c telos -n '__fish_seen_subcommand_from ${name}' ${what}`);
    }
  }
  for (const option of options)
    lines.push(`complete -c telos -n __fish_use_subcommand ${fishOption(option, withWord)}`);
  return `${lines.join('\n')}\n`;
}

function fishOption(option: string, withWord: readonly string[]): string {
  const name = option.slice(2);
  if (name === 'agent') return `-l agent -x -a '(${quoted(agentNames)})'`;
  if ([...folderOptions, ...fileOptions].includes(option)) return `-l ${name} -r -F`;
  return withWord.includes(option) ? `-l ${name} -x` : `-l ${name}`;
}

const quoted = (text: string): string => text.replaceAll("'", "\\'");
