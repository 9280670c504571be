/** The commands, options and arguments of a program, with the values that a shell can complete. */

import { NODE_STATES } from '@nodepool/core';
import type { RecordList } from '@nodepool/store';
import { dibImageList, imageList, imageStatus, labelList, nodeList, requestList } from '@nodepool/store';
import type { Argument, Command, Option } from 'commander';

export type Values =
  | { readonly kind: 'choices'; readonly choices: readonly string[] }
  /** The names of existing objects, which a command prints. */
  | { readonly kind: 'objects'; readonly objects: ObjectKind }
  /** The names of objects of the kind that the first argument names. */
  | { readonly kind: 'by-first-argument' }
  | { readonly kind: 'file' }
  | { readonly kind: 'any' };

/** The command that prints the names of objects of a kind. */
export const NAME_COMMANDS = {
  node: ['list', '-o', 'name'],
  request: ['request-list', '-o', 'name'],
  label: ['label-list', '-o', 'name'],
  provider: ['provider-names'],
  image: ['image-status', '-o', 'name'],
  build: ['dib-image-list', '-o', 'name'],
} as const;
export type ObjectKind = keyof typeof NAME_COMMANDS;

export interface CompletedOption {
  readonly short: string | undefined;
  readonly long: string;
  readonly description: string;
  /** Undefined if the option has no value. */
  readonly values: Values | undefined;
}

export interface CompletedCommand {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** Values of the arguments in order; the last one repeats if `repeats`. */
  readonly arguments: readonly Values[];
  readonly repeats: boolean;
}

export interface CompletedProgram {
  readonly name: string;
  readonly options: readonly CompletedOption[];
  readonly commands: readonly CompletedCommand[];
}

export function completedProgram(program: Command): CompletedProgram {
  const commands = program.createHelp().visibleCommands(program);
  return { name: program.name(), options: optionsOf(program, ''), commands: commands.map(completedCommand) };
}

function completedCommand(command: Command): CompletedCommand {
  const { registeredArguments } = command;
  return {
    name: command.name(),
    description: command.description(),
    options: optionsOf(command, command.name()),
    arguments: registeredArguments.map((argument) => argumentValues(command.name(), argument)),
    repeats: registeredArguments.at(-1)?.variadic === true,
  };
}

function optionsOf(command: Command, name: string): readonly CompletedOption[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap((option) =>
      option.long === undefined
        ? []
        : [
            {
              short: option.short,
              long: option.long,
              description: option.description,
              values: option.required || option.optional ? optionValues(name, option) : undefined,
            },
          ],
    );
}

const FILES = new Set(['--config', '--secure', '--logging-config']);
const OBJECT_OPTIONS: Readonly<Record<string, ObjectKind>> = {
  '--label': 'label',
  '--provider': 'provider',
  '--image': 'image',
};
const FIELD_OPTIONS = new Set(['--sort', '--fields', '--filter']);

function optionValues(command: string, option: Option): Values {
  const long = option.long ?? '';
  if (option.argChoices !== undefined) return { kind: 'choices', choices: option.argChoices };
  if (FILES.has(long)) return { kind: 'file' };
  const objects = OBJECT_OPTIONS[long];
  if (objects !== undefined) return { kind: 'objects', objects };
  if (long === '--state') return { kind: 'choices', choices: statesOf(command) };
  if (FIELD_OPTIONS.has(long)) return { kind: 'choices', choices: columnsOf(command).map(({ field }) => field) };
  return { kind: 'any' };
}

/** Objects that the arguments of commands name, by command and argument. */
const OBJECT_ARGUMENTS: Readonly<Record<string, ObjectKind>> = {
  'delete id': 'node',
  'hold id': 'node',
  'request label': 'label',
  'image-build image': 'image',
  'image-pause image': 'image',
  'image-unpause image': 'image',
  'dib-image-delete id': 'build',
  'info provider': 'provider',
  'erase provider': 'provider',
  'alien-image-list provider': 'provider',
};

function argumentValues(command: string, argument: Argument): Values {
  if (argument.argChoices !== undefined) return { kind: 'choices', choices: argument.argChoices };
  const objects = OBJECT_ARGUMENTS[`${command} ${argument.name()}`];
  if (objects !== undefined) return { kind: 'objects', objects };
  if (argument.name() === 'file') return { kind: 'file' };
  const isOfKind = ['explain', 'describe', 'wait'].includes(command);
  return { kind: isOfKind ? 'by-first-argument' : 'any' };
}

function statesOf(command: string): readonly string[] {
  if (command === 'wait') return [...NODE_STATES, 'gone'];
  return columnsOf(command).find(({ field }) => field === 'state')?.values ?? [];
}

/** Returns the columns of a list; empty for commands without columns. */
function columnsOf(command: string): RecordList['columns'] {
  const options = { columns: 'all', now: 0 } as const;
  const images = {
    ...{ images: () => [], builds: () => [], uploads: () => [], paused: () => false, isBuilding: () => false },
    ...{ buildRequestedAt: () => undefined, lastBuildFailure: () => undefined },
  };
  const lists: Readonly<Record<string, () => RecordList>> = {
    list: () => nodeList({ all: () => [], get: () => undefined }, options),
    'request-list': () => requestList({ all: () => [] }, options),
    'label-list': () => labelList({ pools: () => [] }, options),
    'image-list': () => imageList(images, options),
    'dib-image-list': () => dibImageList(images, options),
    'image-status': () => imageStatus(images, options),
  };
  return lists[command]?.().columns ?? [];
}
