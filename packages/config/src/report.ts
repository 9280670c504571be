import type { ConfigDocument } from './document.js';
import { describeValue, formatPath, type ConfigProblem, type KeyPath } from './problems.js';

export interface ProblemText {
  readonly expected: string;
  /** Replaces the description of the existing value; null: the message has none. */
  readonly found?: string | null | undefined;
  readonly hint?: string | undefined;
  /** Selects the key or the value as the place. */
  readonly at?: 'key' | 'value';
}

export class ProblemReport {
  private readonly byIdentity = new Map<string, ConfigProblem>();
  /** Paths whose value is known to be wrong, so that further problems would only confuse. */
  private readonly settled = new Set<string>();

  get size(): number {
    return this.byIdentity.size;
  }

  /** Returns the problems in the order of the files' lines. */
  list(): ConfigProblem[] {
    const problems = [...this.byIdentity.values()];
    const files = [...new Set(problems.map((problem) => problem.file))];
    return problems.sort(
      (a, b) => files.indexOf(a.file) - files.indexOf(b.file) || a.line - b.line || a.column - b.column,
    );
  }

  add(problem: ConfigProblem): void {
    const identity = JSON.stringify([problem.file, problem.path, problem.expected, problem.hint]);
    if (!this.byIdentity.has(identity)) this.byIdentity.set(identity, problem);
  }

  /** Adds a problem and suppresses further ones for its value. */
  settle(problem: ConfigProblem): void {
    this.suppress(problem);
    this.add(problem);
  }

  /** Suppresses further problems of the value at this place. */
  suppress({ file, path }: ConfigProblem): void {
    this.settled.add(JSON.stringify([file, path]));
  }

  at(document: ConfigDocument, path: KeyPath, text: ProblemText): void {
    const position = document.position(path, text.at);
    const formatted = formatPath(path);
    if (this.settled.has(JSON.stringify([position.file, formatted]))) return;
    const { expected, found, hint } = text;
    const existing = found === undefined ? existingAt(document, path) : (found ?? undefined);
    this.add({ ...position, path: formatted, expected, found: existing, hint });
  }
}

/** Describes the value, unless it has parts: its kind is right, otherwise the schema would have refused it. */
function existingAt(document: ConfigDocument, path: KeyPath): string | undefined {
  const value = document.valueAt(path);
  const hasParts = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
  return hasParts ? undefined : describeValue(value, document.isSecret(path));
}
