/** The completion script for bash. It needs only bash itself. */

import type { CompletedCommand, CompletedOption, CompletedProgram, Values } from './model.js';
import { NAME_COMMANDS } from './model.js';
import { quoted } from './quote.js';

export function bashCompletion({ name, options, commands }: CompletedProgram): string {
  const everyOption = [...options, ...commands.flatMap((command) => command.options)];
  const valued = new Set(names(everyOption.filter(({ values }) => values !== undefined)));
  const files = names(options.filter(({ values }) => values?.kind === 'file'));
  return [
    `# Completion of ${name} for bash: source <(${name} completion bash)`,
    ...helpers(name),
    `_${name}() {`,
    '  local command= first= word line',
    '  local -i index place=0 last=-1',
    '  local -a globals=() words=()',
    '  # Bash splits words at colons, too.',
    '  for ((index = 0; index <= COMP_CWORD; index++)); do',
    '    word=${COMP_WORDS[index]}',
    '    if [[ $last -gt 0 && ($word == :* || ${words[last]} == *:) ]]; then words[last]+=$word',
    '    else last+=1; words[last]=$word; fi',
    '  done',
    '  local current=${words[last]} previous=${words[last-1]}',
    '  # `--option=value` is three words.',
    '  if [[ $current == = ]]; then current=; elif [[ $previous == = ]]; then previous=${words[last-2]}; fi',
    '  for ((index = 1; index < last; index++)); do',
    '    word=${words[index]}',
    '    case $word in',
    `      ${[...valued].join('|')})`,
    '        index+=1; [[ ${words[index]} == = ]] && index+=1',
    `        case $word in ${files.join('|')}) globals+=("$word" "\${words[index]}") ;; esac ;;`,
    '      -*|=) ;;',
    '      *) if [[ -z $command ]]; then command=$word; else place+=1; [[ $place -eq 1 ]] && first=$word; fi ;;',
    '    esac',
    '  done',
    '  COMPREPLY=()',
    '  case $command:$previous in',
    ...options.flatMap((option) => optionCase(name, option, '*')),
    ...commands.flatMap((command) => command.options.flatMap((option) => optionCase(name, option, command.name))),
    '  esac',
    '  case $command in',
    "    '')",
    `      if [[ $current == -* ]]; then ${wordsOf(name, names(options))}`,
    `      else ${wordsOf(
      name,
      commands.map((command) => command.name),
    )}; fi ;;`,
    ...commands.flatMap((command) => commandCase(name, command)),
    '  esac',
    '}',
    `complete -F _${name} ${name}`,
  ].join('\n');
}

/** Functions that add candidates: fixed words, names of existing objects, and files. */
function helpers(name: string): readonly string[] {
  const cases = Object.entries(NAME_COMMANDS).map(
    ([kind, words]) => `    ${kind}) set -- "\${globals[@]}" ${words.join(' ')} ;;`,
  );
  return [
    `_${name}_words() {`,
    '  COMPREPLY+=($(compgen -W "$1" -- "$current"))',
    '}',
    `_${name}_names() {`,
    '  local -a limit=()',
    '  command -v timeout > /dev/null && limit=(timeout 3)',
    '  case $1 in',
    ...cases,
    '    *) return ;;',
    '  esac',
    '  # `compgen -W` would expand the names; they come from other programs. In quotes, no candidate may need escapes.',
    '  local typed=${current//\\\\/} unsafe= colons=',
    '  case $current in',
    `    '"'*) typed=\${current:1} unsafe='[\\\\"$\`!]' ;;`,
    `    "'"*) typed=\${current:1} unsafe="'" ;;`,
    '  esac',
    '  [[ -n $unsafe ]] || colons=${typed%"${typed##*:}"}',
    '  while IFS= read -r line; do',
    '    [[ $line == "$typed"* && ( -z $unsafe || $line != *$unsafe* ) ]] || continue',
    '    line=${line#"$colons"}',
    '    [[ -n $unsafe ]] || printf -v line %q "$line"',
    '    COMPREPLY+=("$line")',
    `  done < <("\${limit[@]}" ${name} "$@" 2> /dev/null)`,
    '}',
    `_${name}_files() {`,
    '  compopt -o filenames 2> /dev/null',
    '  while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")',
    '}',
  ];
}

function names(options: readonly CompletedOption[]): string[] {
  return options.flatMap(({ short, long }) => (short === undefined ? [long] : [short, long]));
}

function optionCase(program: string, option: CompletedOption, command: string): readonly string[] {
  if (option.values === undefined) return [];
  const patterns = names([option]).map((each) => `${command}:${each}`);
  return [`    ${patterns.join('|')}) ${candidates(program, option.values)}; return ;;`];
}

function commandCase(program: string, command: CompletedCommand): readonly string[] {
  const last = command.arguments.length - 1;
  return [
    `    ${command.name})`,
    `      if [[ $current == -* ]]; then ${wordsOf(program, names(command.options))}; return; fi`,
    '      case $place in',
    ...command.arguments.map(
      (values, index) =>
        `        ${index === last && command.repeats ? '*' : index}) ${candidates(program, values)} ;;`,
    ),
    '      esac ;;',
  ];
}

function wordsOf(program: string, words: readonly string[]): string {
  return `_${program}_words ${quoted(words.join(' '))}`;
}

function candidates(program: string, values: Values): string {
  switch (values.kind) {
    case 'choices':
      return wordsOf(program, values.choices);
    case 'objects':
      return `_${program}_names ${values.objects}`;
    case 'by-first-argument':
      return `_${program}_names "$first"`;
    case 'file':
      return `_${program}_files`;
    case 'any':
      return ':';
  }
}
