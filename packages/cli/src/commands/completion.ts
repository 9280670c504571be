/** `nodepool completion bash|zsh|fish`: the completion script of a shell. */

import type { Command } from 'commander';
import type { NodepoolConfig } from '@nodepool/config';
import type { ConsoleContext } from '../command-context.js';
import { bashCompletion } from '../completion/bash.js';
import { fishCompletion } from '../completion/fish.js';
import { completedProgram, type CompletedProgram } from '../completion/model.js';
import { zshCompletion } from '../completion/zsh.js';

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } satisfies Record<
  string,
  (program: CompletedProgram) => string
>;
export type Shell = keyof typeof SCRIPTS;

export function completion({ out }: ConsoleContext, program: Command, shell: Shell): void {
  out.print(SCRIPTS[shell](completedProgram(program)));
}

/** Prints the names of the configured providers, for completion scripts. */
export function providerNames(
  { out }: ConsoleContext,
  { providers, brokenProviders }: Pick<NodepoolConfig, 'providers' | 'brokenProviders'>,
): void {
  const names = [...providers.keys(), ...brokenProviders.keys()].sort();
  if (names.length > 0) out.print(names.join('\n'));
}
