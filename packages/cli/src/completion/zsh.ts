/** The completion script for zsh. */

import { NAME_COMMANDS, type CompletedOption, type CompletedProgram, type Values } from './model.js';
import { quoted } from './quote.js';

export function zshCompletion({ name, options, commands }: CompletedProgram): string {
  const lines = [
    `#compdef ${name}`,
    `# Completion of ${name} for zsh: ${name} completion zsh > ~/.zfunc/_${name}, with ~/.zfunc in fpath`,
    ...nameFunction(name),
    `_${name}() {`,
    '  local context state state_descr line',
    '  local -A opt_args',
    '  local -a globals subcommands',
    '  _arguments -C \\',
    ...options.map((option) => `    ${specOf(name, option)} \\`),
    "    '1: :->command' '*:: :->argument'",
    '  local option',
    '  for option in -c --config -s --secure; do',
    '    [[ -n ${opt_args[$option]} ]] && globals+=($option ${(Q)opt_args[$option]})',
    '  done',
    '  case $state in',
    '    command)',
    '      subcommands=(',
    ...commands.map(({ name: command, description }) => `        ${quoted(`${command}:${escaped(description)}`)}`),
    '      )',
    '      _describe command subcommands ;;',
    '    argument)',
    '      case $words[1] in',
  ];
  for (const command of commands) {
    const specs = command.options.map((option) => specOf(name, option));
    for (const [index, values] of command.arguments.entries()) {
      const isLast = index === command.arguments.length - 1;
      specs.push(quoted(`${isLast && command.repeats ? '*' : index + 1}: :${actionOf(name, values)}`));
    }
    lines.push(`        ${command.name}) _arguments ${specs.join(' ')} ;;`);
  }
  lines.push(
    '      esac ;;',
    '  esac',
    '}',
    '# A function of this name runs the file if zsh has found it in fpath.',
    `if [[ $funcstack[1] == _${name} ]]; then _${name} "$@"; else compdef _${name} ${name}; fi`,
  );
  return lines.join('\n');
}

function nameFunction(name: string): readonly string[] {
  const cases = Object.entries(NAME_COMMANDS).map(
    ([kind, words]) => `    ${kind}) found=(\${(f)"$($limit ${name} $globals ${words.join(' ')} 2> /dev/null)"}) ;;`,
  );
  return [
    `_${name}_names() {`,
    '  local -a found limit',
    '  (( $+commands[timeout] )) && limit=(timeout 3)',
    '  case $1 in',
    ...cases,
    '  esac',
    '  compadd -a -- found',
    '}',
  ];
}

function specOf(program: string, { short, long, description, values }: CompletedOption): string {
  const action = values === undefined ? '' : `: :${actionOf(program, values)}`;
  const text = `[${escaped(description)}]${action}`;
  const name = values === undefined ? long : `${long}=`;
  if (short === undefined) return quoted(`${name}${text}`);
  return `${quoted(`(${short} ${long})`)}{${short},${name}}${quoted(text)}`;
}

function actionOf(program: string, values: Values): string {
  switch (values.kind) {
    case 'choices':
      return `(${values.choices.join(' ')})`;
    case 'objects':
      return `{_${program}_names ${values.objects}}`;
    case 'by-first-argument':
      return `{_${program}_names $line[1]}`;
    case 'file':
      return '_files';
    case 'any':
      return ' ';
  }
}

function escaped(text: string): string {
  return text.replace(/[[\]:\\]/g, '\\$&');
}
