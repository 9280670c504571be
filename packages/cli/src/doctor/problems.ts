/**
 * The problems that launchers report: those of their status pages, with the launchers that see them. The same problem
 * with another text is another finding, because launchers see different parts of the work; other numbers and times are
 * named as such.
 */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { documentOf, type LauncherAnswer } from '../launchers.js';
import { Findings, firstNames, type Finding } from './finding.js';

/** Page below the web endpoint with the problems. */
export const PROBLEMS_PATH = '/status/v1/overview';

interface Reported {
  readonly key: string;
  readonly severity: string;
  readonly title: string;
  /** Unix seconds. */
  readonly since: number | null;
  readonly details: readonly string[];
  readonly effect: string | null;
  readonly remedy: string | null;
  /** Host of the launcher that sees it, if it is not the one that reports it. */
  readonly seenBy: string | null;
  /** Host of the launcher that reports it. */
  readonly by: string;
}

/**
 * `answers` are those of all launchers to `PROBLEMS_PATH`, without the launchers that do not answer at all, which are a
 * finding about programs. `now` is in milliseconds since the epoch.
 */
export function checkProblems(answers: readonly LauncherAnswer[], now: number): readonly Finding[] {
  const findings = new Findings('problems');
  const reported: Reported[] = [];
  const asked = new Set<string>();
  for (const answer of answers) {
    const { launcher } = answer;
    const { host } = new URL(launcher);
    if (answer.outcome !== 'known') {
      findings.warning(host, `its problems are unknown: ${answer.reason}`, 'see the log of the launcher');
      continue;
    }
    try {
      const document = documentOf(answer);
      const by = textOf(objectOf(document['launcher'])['hostname']) ?? host;
      asked.add(by);
      reported.push(...objectsOf(document['problems']).map((problem) => readProblem(problem, by)));
    } catch (error) {
      findings.warning(host, `its problems are unknown: ${String(error)}`, 'is another program at its address?');
    }
  }
  const byText = new Map<string, Reported[]>();
  for (const problem of reported) {
    // A launcher that has answered reports its own trouble better than others do.
    if (problem.seenBy !== null && asked.has(problem.seenBy)) continue;
    const { key, title, details, effect } = problem;
    const text = JSON.stringify([key, withoutNumbers(JSON.stringify([title, details, effect]))]);
    byText.set(text, [...(byText.get(text) ?? []), problem]);
  }
  for (const problems of byText.values()) addProblem(findings, problems, asked.size, now);
  if (byText.size === 0 && asked.size > 0) findings.ok('launchers', 'report no problem');
  return findings.list;
}

function addProblem(findings: Findings, problems: readonly Reported[], launchers: number, now: number): void {
  const [worst] = problems.toSorted(
    (a, b) => rank(a) - rank(b) || countIn(b) - countIn(a) || (a.since ?? Infinity) - (b.since ?? Infinity),
  );
  if (worst === undefined) return;
  const { severity, title, since, details, effect, remedy } = worst;
  const seconds = since === null ? 0 : Math.round(now / 1000 - since);
  const age = seconds < 1 || severity === 'info' ? '' : ` for ${durationOf(seconds)}`;
  const isSame = problems.every((problem) => problem.title === title && problem.effect === effect);
  const reporters = `${firstNames(problems.map((problem) => problem.by))}${isSame ? '' : ', with different numbers'}`;
  const by = launchers > 1 ? ` (reported by ${reporters})` : '';
  const text = [details.join('; '), effect === null ? '' : `effect: ${effect}`]
    .filter((part) => part !== '')
    .join('; ');
  const reason = `${text === '' ? 'it lasts' : text}${by}`;
  const object = `${title}${age}`;
  if (severity === 'critical') findings.error(object, reason, remedy ?? 'see the status page of the launcher');
  else if (severity === 'warning') findings.warning(object, reason, remedy ?? 'see the status page of the launcher');
  else findings.info(object, reason);
}

function durationOf(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function rank({ severity }: Reported): number {
  return severity === 'critical' ? 0 : severity === 'warning' ? 1 : 2;
}

function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+/gu, '0');
}

/** Returns the first number of the title, which counts what is wrong. */
function countIn({ title }: Reported): number {
  return Number(/\d+/u.exec(title)?.[0] ?? 0);
}

function readProblem(problem: JsonObject, by: string): Reported {
  const { key, severity, title, since, details, effect, remedy, launcher } = problem;
  return {
    ...{ key: textOf(key) ?? '', severity: textOf(severity) ?? 'info', title: textOf(title) ?? '', by },
    ...{ effect: textOf(effect), remedy: textOf(remedy), seenBy: textOf(launcher) },
    since: typeof since === 'number' ? since : null,
    details: Array.isArray(details) ? details.filter((detail) => typeof detail === 'string') : [],
  };
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

function objectsOf(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
