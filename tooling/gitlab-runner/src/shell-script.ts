/** Job scripts as the runner's bash shell writes them. */

import type { Job, Stage, Variable } from './job.js';
import { temporaryDirOf, type Directories } from './variables.js';

/** Ends the script with an ordinary status when it receives SIGTERM, so that bash does not print its text. */
const EXIT_ON_TERMINATION = "trap 'exit 1' TERM";
const LITERAL = /^[A-Za-z0-9,\-./@_]+$/;
const CONTROL: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  "'": "\\'",
  '\\': '\\\\',
};

/** Quotes a text for bash, with ANSI-C quoting unless it is literal. */
export function shellQuote(text: string): string {
  if (text === '') return "''";
  if (LITERAL.test(text)) return text;
  let quoted = '';
  for (const byte of Buffer.from(text, 'utf8')) {
    const character = String.fromCharCode(byte);
    if (CONTROL[character] !== undefined) quoted += CONTROL[character];
    else if (byte >= 0x20 && byte < 0x7f) quoted += character;
    else quoted += `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return `$'${quoted}'`;
}

export interface ScriptContext {
  readonly job: Job;
  readonly variables: readonly Variable[];
  readonly directories: Directories;
  /** Host name that `config_exec` set, for the first line of the log. */
  readonly hostname: string | undefined;
  /** `CI_DEBUG_TRACE`. */
  readonly trace: boolean;
}

/** Returns the script of a stage, or undefined if the runner skips the stage because it has nothing to do. */
export function scriptOf(stage: Stage, context: ScriptContext): string | undefined {
  const lines = linesOf(stage, context);
  if (lines === undefined) return undefined;
  const body = `${lines.join('\n')}\n`;
  return [
    '#!/usr/bin/env bash\n',
    `${EXIT_ON_TERMINATION}\n`,
    ...(context.trace ? ['set -o xtrace'] : []),
    'case "$(set -o)" in *"pipefail"*) set -o pipefail;; esac; set -o errexit',
    'set +o noclobber',
    `(${EXIT_ON_TERMINATION}; eval ${shellQuote(body)}) < /dev/null`,
    'exit 0',
    '',
  ].join('\n');
}

function linesOf(stage: Stage, context: ScriptContext): string[] | undefined {
  const { job, directories } = context;
  const temporary = temporaryDirOf(directories);
  const generated = job.generated?.[stage];
  switch (stage) {
    case 'prepare_script': {
      const via = context.hostname === undefined ? '' : ` via ${context.hostname}`;
      const first = `echo ${JSON.stringify(`Running on $(hostname)${via}...`)}`;
      return [first, `rm -f ${JSON.stringify(`${temporary}/gitlab_runner_env`)}`, ...(generated ?? [])];
    }
    case 'get_sources':
      return [
        ...exportsOf(context, true),
        'echo "Skipping Git repository setup"',
        `mkdir -p ${JSON.stringify(directories.project)}`,
        ...(generated ?? []),
      ];
    case 'clear_worktree':
      return ['echo "Deleting tracked and untracked files..."', ...(generated ?? [])];
    case 'build_script':
      return userScript(context, job.script);
    case 'after_script':
      if (job.afterScript === undefined || job.afterScript.length === 0) return undefined;
      return userScript(context, job.afterScript);
    case 'cleanup_file_variables': {
      const files = context.variables.filter(({ file }) => file === true).map(({ key }) => key);
      const removals = files.map((key) => `rm -f ${JSON.stringify(`${temporary}/${key}`)}`);
      return [...exportsOf(context, false), ...removals, ...(generated ?? [])];
    }
    default: {
      const step = job.steps?.find(({ name }) => stage === `step_${name}`);
      if (step !== undefined) return userScript(context, step.script);
      return generated === undefined ? undefined : [...exportsOf(context, true), ...generated];
    }
  }
}

function userScript(context: ScriptContext, commands: readonly string[]): string[] {
  const enter = `cd ${JSON.stringify(context.directories.project)}`;
  return [...exportsOf(context, true), enter, ...commands.flatMap(commandLines)];
}

function commandLines(command: string): string[] {
  const [first = '', ...more] = command.trim().split('\n');
  const shown = more.length === 0 ? first : `${first} # collapsed multi-line command`;
  return [`echo ${shellQuote(`\x1b[32;1m$ ${shown}\x1b[0;m`)}`, command.trim()];
}

function exportsOf({ variables, directories }: ScriptContext, writeFiles: boolean): string[] {
  const temporary = temporaryDirOf(directories);
  return variables.flatMap(({ key, value, file }) => {
    if (file !== true) return [`export ${shellQuote(key)}=${shellQuote(value)}`];
    const path = JSON.stringify(`${temporary}/${key}`);
    const write = [`mkdir -p ${JSON.stringify(temporary)}`, `printf '%s' ${shellQuote(value)} > ${path}`];
    return [...(writeFiles ? write : []), `export ${shellQuote(key)}=${path}`];
  });
}
