/** `nodepool config-validate`: reports every problem of the configuration in one run. */

import { formatProblem, type ConfigProblem, type LoadResult } from '@nodepool/config';
import { CommandError, type ConsoleContext } from '../command-context.js';

export interface ReportOptions {
  /** `github` prints annotations, which GitHub shows beside the lines of a change. */
  readonly format: 'pretty' | 'json' | 'github';
  /** True to accept providers that cannot be served with what is installed here. */
  readonly fileOnly: boolean;
}

interface Finding {
  readonly severity: 'error' | 'warning';
  readonly problem: ConfigProblem;
}

/** Prints the problems. Throws `CommandError` for errors, providers that cannot be served, and incompatible keys. */
export function configValidate({ out }: ConsoleContext, result: LoadResult, { format, fileOnly }: ReportOptions): void {
  const errors = result.ok ? result.incompatible : result.problems;
  const findings: readonly Finding[] = [
    ...result.warnings.map((problem): Finding => ({ severity: 'warning', problem })),
    ...errors.map((problem): Finding => ({ severity: 'error', problem })),
  ];
  const refusal = refusalOf(result, fileOnly);
  if (format === 'json') out.print(JSON.stringify(documentOf(findings, refusal), undefined, 2));
  for (const { severity, problem } of format === 'json' ? [] : findings) {
    if (format === 'github') out.print(annotation(severity, problem));
    else if (severity === 'error') out.print(formatProblem(problem));
    else out.note(`warning: ${formatProblem(problem)}`);
  }
  if (refusal !== undefined) throw new CommandError(refusal);
  if (format !== 'json') out.print(fileOnly ? 'the file is valid' : 'the configuration is valid');
}

/** Returns the reason for the exit code 1; undefined if there is none. */
function refusalOf(result: LoadResult, fileOnly: boolean): string | undefined {
  if (!result.ok) return `the configuration has ${counted(result.problems.length, 'problem')}`;
  if (result.incompatible.length > 0) {
    const keys = counted(result.incompatible.length, 'place');
    return `the configuration is valid, but the Python Nodepool cannot read it in ${keys}`;
  }
  if (fileOnly || result.unserved.size === 0) return undefined;
  const providers = [...result.unserved].join(', ');
  return `the configuration is valid, but with what is installed here these providers are not served: ${providers}`;
}

function documentOf(findings: readonly Finding[], refusal: string | undefined): unknown {
  return {
    valid: refusal === undefined,
    ...(refusal === undefined ? {} : { reason: refusal }),
    findings: findings.map(({ severity, problem }) => ({ severity, ...problem, message: messageOf(problem) })),
  };
}

/** Returns a workflow command of GitHub Actions; its values are escaped as the runner's documentation says. */
function annotation(severity: Finding['severity'], problem: ConfigProblem): string {
  const { file, line, column } = problem;
  const place = line === 0 ? '' : `,line=${line},col=${column}`;
  return `::${severity} file=${escapeProperty(file)}${place}::${escapeData(messageOf(problem))}`;
}

function messageOf(problem: ConfigProblem): string {
  return formatProblem({ ...problem, file: '', line: 0 }).replace(/^: /, '');
}

function escapeData(text: string): string {
  return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
  return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
