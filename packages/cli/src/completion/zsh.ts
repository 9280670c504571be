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
    '  local -a globals commands',
    '  _arguments -C \\',
    ...options.map((option) => `    ${specOf(name, option)} \\`),
    "    '1: :->command' '*:: :->argument'",
    '  local option',
    '  for option in -c --config -s --secure; do',
    '    [[ -n ${opt_args[$option]} ]] && globals+=($option ${opt_args[$option]})',
    '  done',
    '  case $state in',
    '    command)',
    '      commands=(',
    ...commands.map(({ name: command, description }) => `        ${quoted(`${command}:${escaped(description)}`)}`),
    '      )',
    '      _describe command commands ;;',
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
  lines.push('      esac ;;', '  esac', '}', `compdef _${name} ${name}`);
  return lines.join('\n');
}

function nameFunction(name: string): readonly string[] {
  const cases = Object.entries(NAME_COMMANDS).map(
    ([kind, words]) => `    ${kind}) found=(\${(f)"$(${name} $globals ${words.join(' ')} 2> /dev/null)"}) ;;`,
  );
  return [`_${name}_names() {`, '  local -a found', '  case $1 in', ...cases, '  esac', '  compadd -a found', '}'];
}

function specOf(program: string, { short, long, description, values }: CompletedOption): string {
  const action = values === undefined ? '' : `: :${actionOf(program, values)}`;
  const text = `[${escaped(description)}]${action}`;
  if (short === undefined) return quoted(`${long}${text}`);
  return `${quoted(`(${short} ${long})`)}{${short},${long}}${quoted(text)}`;
}

function actionOf(program: string, values: Values): string {
  switch (values.kind) {
    case 'choices':
      return `(${values.choices.join(' ')})`;
    case 'objects':
      return `{_${program}_names ${values.objects}}`;
    case 'by-first-argument':
      return `{_${program}_names $words[2]}`;
    case 'file':
      return '_files';
    case 'any':
      return ' ';
  }
}

function escaped(text: string): string {
  return text.replace(/[[\]:\\]/g, '\\$&');
}
