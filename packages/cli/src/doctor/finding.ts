import { foldRepeats } from '../lists/terminal-table.js';

export const SEVERITIES = ['error', 'warning', 'info', 'ok'] as const;
export type Severity = (typeof SEVERITIES)[number];

export interface Finding {
  /** The group of checks, e.g. `zookeeper`. */
  readonly check: string;
  readonly severity: Severity;
  /** The examined object, e.g. a server, a file, a provider. */
  readonly object: string;
  readonly reason: string;
  /** The action of the operator; null if there is none. */
  readonly remedy: string | null;
}

export class Findings {
  private readonly found: Finding[] = [];

  constructor(private readonly check: string) {}

  get list(): readonly Finding[] {
    return this.found;
  }

  error(object: string, reason: string, remedy: string): void {
    this.add('error', object, reason, remedy);
  }

  warning(object: string, reason: string, remedy: string): void {
    this.add('warning', object, reason, remedy);
  }

  info(object: string, reason: string): void {
    this.add('info', object, reason, null);
  }

  ok(object: string, reason: string): void {
    this.add('ok', object, reason, null);
  }

  private add(severity: Severity, object: string, reason: string, remedy: string | null): void {
    this.found.push({ check: this.check, severity, object, reason, remedy });
  }
}

const MAX_NAMED = 5;

/** Returns the first of the names, each once, with the number of the others. */
export function firstNames(names: readonly string[]): string {
  const different = [...new Set(names)];
  const more = different.length - MAX_NAMED;
  const first = different.slice(0, MAX_NAMED);
  const folded = foldRepeats(names.filter((name) => first.includes(name)));
  return more > 0 ? `${folded} and ${more} more` : folded;
}

/** Returns the number with its noun: `1 node`, `2 nodes`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
