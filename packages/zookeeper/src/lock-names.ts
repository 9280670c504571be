/** Names of contenders for a lock, as kazoo's lock recipe forms and reads them (`kazoo.recipe.lock`). */

const MARK = '__lock__';
const SEQUENCE = /^-?\d+$/;

/** What the name of a contender begins with; the server appends the sequence number. */
export function contenderPrefix(uniqueHex: string): string {
  return uniqueHex + MARK;
}

/** A contender among the children of a lock directory. */
export interface Contender {
  readonly name: string;
  readonly sequence: number;
}

/** The contenders among `children`, next holder first. Their random beginnings mean nothing for the order. */
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

/** Whether any child of a lock directory contends for the lock. */
export function isContended(children: Iterable<string>): boolean {
  for (const name of children) if (name.includes(MARK)) return true;
  return false;
}
