/** Results of the checks. */

/** A problem that prevents publication. */
export interface Finding {
  /** Name of the check: `manifest`, `files`, `types`, … */
  readonly check: string;
  /** The problem, its place and its solution. */
  readonly message: string;
}

/** Converts messages to findings. */
export function findings(check: string, messages: readonly string[]): Finding[] {
  return messages.map((message) => ({ check, message }));
}
