/** Deliberate defects of the sources. */

/** A deliberate defect: a replacement of a text in one source file. */
export interface Mutation {
  /** Unique name, e.g. `gce-first-page-only`. */
  readonly id: string;
  /** The source file, from the root of the repository. A file that has been moved since is found by `find`. */
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The rule that the defect breaks, as a sentence. */
  readonly breaks: string;
  /** The test files that should see the defect, from the root of the repository, the fastest first. */
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
