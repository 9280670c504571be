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
   * The tests that should see the defect, from the root of the repository, the fastest first: test files, or folders of
   * packages, whose tests that import the file run.
   */
  readonly tests: readonly string[];
  /** Reason why no test sees the defect; absent if a test must. */
  readonly survives?: string | undefined;
}

/** A defect of a package: `file` is below its `src`, `tests` are in its `test`. */
export interface PackageMutation extends Mutation {
  /** Further tests, from the root of the repository. */
  readonly elsewhere?: readonly string[];
}

/** Returns the defects with paths from the root of the repository. */
export function inPackage(folder: string, mutations: readonly PackageMutation[]): readonly Mutation[] {
  return mutations.map(({ file, tests, elsewhere = [], ...mutation }) => ({
    ...mutation,
    file: `${folder}/src/${file}`,
    tests: [...tests.map((test) => `${folder}/test/${test}`), ...elsewhere],
  }));
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
