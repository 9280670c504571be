/** What the checks find. */

/** One thing that must not be published as it is. */
export interface Finding {
  /** Which check: `manifest`, `files`, `types`, … */
  readonly check: string;
  /** What is wrong, where, and what to do. */
  readonly message: string;
}

/** Makes findings of messages. */
export function findings(check: string, messages: readonly string[]): Finding[] {
  return messages.map((message) => ({ check, message }));
}
