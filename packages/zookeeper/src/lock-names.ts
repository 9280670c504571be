/** Names of lock contenders, as in kazoo's lock recipe (`kazoo.recipe.lock`). */

const MARK = '__lock__';
const SEQUENCE = /^-?\d+$/;

/** Returns the start of a contender's name; the server appends the sequence number. */
export function contenderPrefix(uniqueHex: string): string {
  return uniqueHex + MARK;
}

/**
 * Returns the path of the contender that a transaction creates which also creates the lock directory: sequence numbers
 * begin at 0. `uniqueHex`: its unique part.
 */
export function firstContender(directory: string, uniqueHex: string): string {
  return `${directory}/${contenderPrefix(uniqueHex)}0000000000`;
}

/** A contender among the children of a lock directory. */
export interface Contender {
  readonly name: string;
  readonly sequence: number;
}

/** Returns the contenders among `children` by sequence number, the holder first. */
export function sortedContenders(children: readonly string[]): Contender[] {
  const contenders: Contender[] = [];
  for (const name of children) {
    const at = name.lastIndexOf(MARK);
    if (at < 0) continue;
    const digits = name.slice(at + MARK.length);
    if (SEQUENCE.test(digits)) contenders.push({ name, sequence: Number(digits) });
  }
  return contenders.sort((one, other) => one.sequence - other.sequence);
}

/** Returns true if one of the children of a lock directory is a contender. */
export function isContended(children: Iterable<string>): boolean {
  for (const name of children) if (name.includes(MARK)) return true;
  return false;
}
