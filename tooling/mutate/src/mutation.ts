/** Deliberate defects of the sources. */

/** A deliberate defect: a replacement of a text in one source file. */
export interface Mutation {
  /** Unique name, e.g. `gce-first-page-only`. */
  readonly id: string;
  /** The source file, from the root of the repository. */
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The rule that the defect breaks, as a sentence. */
  readonly breaks: string;
  /**
   * The tests that should see the defect, from the root of the repository: test files, or folders of packages, whose
   * tests that import the file run.
   */
  readonly tests: readonly string[];
  /** Reason why no test sees the defect; absent if a test must. */
  readonly survives?: string | undefined;
}

/** Returns the file's text with the defect. Throws if the text to be replaced does not occur exactly once. */
export function mutated(text: string, { id, file, find, replace }: Mutation): string {
  const at = text.indexOf(find);
  if (at < 0 || text.includes(find, at + 1)) {
    const count = at < 0 ? 'does not occur' : 'occurs more than once';
    throw new Error(`mutation ${id}: its text ${count} in ${file}; adapt \`find\` in tooling/mutate/src/mutations`);
  }
  return text.slice(0, at) + replace + text.slice(at + find.length);
}
