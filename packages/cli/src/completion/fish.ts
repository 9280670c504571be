/** The completion script for fish. */

import { NAME_COMMANDS, type CompletedOption, type CompletedProgram, type Values } from './model.js';

export function fishCompletion({ name, options, commands }: CompletedProgram): string {
  const isCommand = (command: string): string => `__fish_seen_subcommand_from ${command}`;
  const lines = [
    `# Completion of ${name} for fish: ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    ...nameFunction(name),
    `complete -c ${name} -f`,
    ...options.map((option) => `complete -c ${name} ${optionText(name, option)}`),
  ];
  for (const { name: command, description } of commands) {
    lines.push(`complete -c ${name} -n __fish_use_subcommand -a ${command} -d ${fishQuoted(description)}`);
  }
  for (const command of commands) {
    for (const option of command.options) {
      lines.push(`complete -c ${name} -n ${fishQuoted(isCommand(command.name))} ${optionText(name, option)}`);
    }
    for (const [index, values] of command.arguments.entries()) {
      const candidates = candidatesOf(name, values);
      if (candidates === undefined) continue;
      const isLast = index === command.arguments.length - 1;
      const place = `test (__${name}_place) ${isLast && command.repeats ? '-ge' : '-eq'} ${index}`;
      const condition = `${isCommand(command.name)}; and ${place}`;
      lines.push(`complete -c ${name} -n ${fishQuoted(condition)} ${candidates}`);
    }
  }
  return lines.join('\n');
}

function nameFunction(name: string): readonly string[] {
  const cases = Object.entries(NAME_COMMANDS).flatMap(([kind, words]) => [
    `    case ${kind}`,
    `      ${name} $globals ${words.join(' ')} 2>/dev/null`,
  ]);
  return [
    `function __${name}_words`,
    '  # The words after the program, without options and the file of -c.',
    '  set -l skip 0',
    '  for word in (commandline -opc)[2..-1]',
    '    if test $skip -eq 1; set skip 0; continue; end',
    '    switch $word',
    '      case -c --config -s --secure -l --logging-config --color --connect-timeout',
    '        set skip 1',
    "      case '-*'",
    "      case '*'",
    '        echo $word',
    '    end',
    '  end',
    'end',
    `function __${name}_place`,
    `  math (count (__${name}_words)) - 1`,
    'end',
    `function __${name}_names`,
    '  set -l globals',
    '  set -l words (commandline -opc)',
    '  for index in (seq (count $words))',
    '    switch $words[$index]',
    '      case -c --config -s --secure',
    '        set -a globals $words[$index] $words[(math $index + 1)]',
    '    end',
    '  end',
    '  switch $argv[1]',
    ...cases,
    '  end',
    'end',
  ];
}

function optionText(program: string, { short, long, description, values }: CompletedOption): string {
  const parts = [`-l ${long.replace(/^--/, '')}`, `-d ${fishQuoted(description)}`];
  if (short !== undefined) parts.unshift(`-s ${short.replace(/^-/, '')}`);
  if (values !== undefined) parts.push('-x', candidatesOf(program, values) ?? '');
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
      return `-a ${fishQuoted('(__fish_complete_path)')}`;
    case 'any':
      return undefined;
  }
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", String.raw`\'`)}'`;
}
