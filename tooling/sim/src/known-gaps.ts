/** What the launcher does not keep yet: runs leave these rules out unless they are asked to be strict. At present: nothing. */
export const KNOWN_GAPS: ReadonlySet<string> = new Set();
