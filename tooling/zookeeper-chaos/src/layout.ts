/** The paths of the clients' znodes. */

export const ROOT = '/chaos';
/** One parent per client, for znodes with unique paths. */
export const NODES = `${ROOT}/nodes`;
/** Registers for conditional writes of all clients. */
export const REGISTERS = `${ROOT}/registers`;
export const REGISTER_COUNT = 4;
export const LOCKS = `${ROOT}/locks`;
/** The counter of each lock. */
export const COUNTERS = `${ROOT}/counters`;
export const LOCK_COUNT = 4;
export const EPHEMERALS = `${ROOT}/ephemerals`;
/** The tree of the tree caches. */
export const TREE = `${ROOT}/tree`;
/** The final znode, created after all writes. A tree cache that holds it holds all earlier changes. */
export const TREE_END = `${TREE}/end`;

export const FOLDERS = [ROOT, NODES, REGISTERS, LOCKS, COUNTERS, EPHEMERALS, TREE] as const;

/** `<folder>/0`, `<folder>/1`, … */
export function numbered(folder: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${folder}/${index}`);
}

/** Returns a path without its sequence number, if the name has one (`q-…`). */
export function withoutSequence(path: string): string {
  return path.includes('/q-') ? path.slice(0, -10) : path;
}

/** Returns an identifier of a znode's state. */
export function stateOf(data: Uint8Array, mzxid: bigint): string {
  return `${Buffer.from(data).toString('latin1')}@${mzxid}`;
}
