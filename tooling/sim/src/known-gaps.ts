/** Rules that the launcher does not satisfy yet. Runs ignore them unless they are strict. Currently none. */
export const KNOWN_GAPS: ReadonlySet<string> = new Set();
