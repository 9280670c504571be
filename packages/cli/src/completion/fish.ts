/** The completion script for fish. */

import type { CompletedCommand, CompletedOption, CompletedProgram, Values } from './model.js';
import { NAME_COMMANDS } from './model.js';

export function fishCompletion({ name, options, commands }: CompletedProgram): string {
  const lines = [
    `# Completion of ${name} for fish: ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    ...functions(name, options, commands),
    `complete -c ${name} -f`,
    ...options.map((option) => `complete -c ${name} ${optionText(name, option)}`),
  ];
  for (const { name: command, description } of commands) {
    lines.push(`complete -c ${name} -n __${name}_no_command -a ${command} -d ${fishQuoted(description)}`);
  }
  for (const command of commands) {
    const isCommand = `__${name}_command ${command.name}`;
    for (const option of command.options) {
      lines.push(`complete -c ${name} -n ${fishQuoted(isCommand)} ${optionText(name, option)}`);
    }
    for (const [index, values] of command.arguments.entries()) {
      const candidates = candidatesOf(name, values);
      if (candidates === undefined) continue;
      const isLast = index === command.arguments.length - 1;
      const place = `test (__${name}_place) ${isLast && command.repeats ? '-ge' : '-eq'} ${index}`;
      lines.push(`complete -c ${name} -n ${fishQuoted(`${isCommand}; and ${place}`)} ${candidates}`);
    }
  }
  return lines.join('\n');
}

/** Functions that find the command and its arguments, and print the names of existing objects. */
function functions(
  name: string,
  options: readonly CompletedOption[],
  commands: readonly CompletedCommand[],
): readonly string[] {
  const everyOption = [...options, ...commands.flatMap((command) => command.options)];
  const valued = new Set(namesOf(everyOption.filter(({ values }) => values !== undefined)));
  const files = options.filter(({ values }) => values?.kind === 'file');
  const joined = files.map(({ long }) => `'${long}=*'`);
  const cases = Object.entries(NAME_COMMANDS).flatMap(([kind, words]) => [
    `    case ${kind}`,
    `      $limit ${name} $globals ${words.join(' ')} 2>/dev/null`,
  ]);
  return [
    `function __${name}_words`,
    '  # The words after the program, without options and their values.',
    '  set -l skip 0',
    '  for word in (commandline -opc)[2..-1]',
    '    if test $skip -eq 1; set skip 0; continue; end',
    '    switch $word',
    `      case ${[...valued].join(' ')}`,
    '        set skip 1',
    "      case '-*'",
    "      case '*'",
    '        echo $word',
    '    end',
    '  end',
    'end',
    `function __${name}_no_command`,
    `  test (count (__${name}_words)) -eq 0`,
    'end',
    `function __${name}_command`,
    `  set -l words (__${name}_words)`,
    '  test "$words[1]" = $argv[1]',
    'end',
    `function __${name}_place`,
    `  math (count (__${name}_words)) - 1`,
    'end',
    `function __${name}_names`,
    '  set -l globals',
    '  set -l limit command',
    '  command -sq timeout; and set limit timeout 3',
    '  set -l words (commandline -opc)',
    '  for index in (seq (count $words))',
    '    switch $words[$index]',
    `      case ${namesOf(files).join(' ')}`,
    '        set -a globals $words[$index] $words[(math $index + 1)]',
    `      case ${joined.join(' ')}`,
    '        set -a globals $words[$index]',
    '    end',
    '  end',
    '  switch $argv[1]',
    ...cases,
    '  end',
    'end',
  ];
}

function namesOf(options: readonly CompletedOption[]): string[] {
  return options.flatMap(({ short, long }) => (short === undefined ? [long] : [short, long]));
}

function optionText(program: string, { short, long, description, values }: CompletedOption): string {
  const parts = [`-l ${long.replace(/^--/, '')}`, `-d ${fishQuoted(description)}`];
  if (short !== undefined) parts.unshift(`-s ${short.replace(/^-/, '')}`);
  if (values !== undefined) parts.push(values.kind === 'file' ? '-r' : '-x', candidatesOf(program, values) ?? '');
  return parts.join(' ').trimEnd();
}

function candidatesOf(program: string, values: Values): string | undefined {
  switch (values.kind) {
    case 'choices':
      return `-a ${fishQuoted(values.choices.join(' '))}`;
    case 'objects':
      return `-a ${fishQuoted(`(__${program}_names ${values.objects})`)}`;
    case 'by-first-argument':
      return `-a ${fishQuoted(`(__${program}_names (__${program}_words)[2])`)}`;
    case 'file':
      return '-F';
    case 'any':
      return undefined;
  }
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}
