/** Where the clients' znodes are. */

export const ROOT = '/chaos';
/** A folder per client, for znodes whose paths are used once. */
export const NODES = `${ROOT}/nodes`;
/** Registers that all clients write, on a condition. */
export const REGISTERS = `${ROOT}/registers`;
export const REGISTER_COUNT = 4;
export const LOCKS = `${ROOT}/locks`;
/** The counter of each lock. */
export const COUNTERS = `${ROOT}/counters`;
export const LOCK_COUNT = 4;
export const EPHEMERALS = `${ROOT}/ephemerals`;
/** What cached trees mirror. */
export const TREE = `${ROOT}/tree`;
/** Made when all is quiet: a tree that has it has all that came before. */
export const TREE_END = `${TREE}/end`;

export const FOLDERS = [ROOT, NODES, REGISTERS, LOCKS, COUNTERS, EPHEMERALS, TREE] as const;

/** `<folder>/0`, `<folder>/1`, … */
export function numbered(folder: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${folder}/${index}`);
}

/** A path without the ten digits that the server appended, if the name says that it did (`q-…`). */
export function withoutSequence(path: string): string {
  return path.includes('/q-') ? path.slice(0, -10) : path;
}

/** What identifies a state of a znode. */
export function stateOf(data: Uint8Array, mzxid: bigint): string {
  return `${Buffer.from(data).toString('latin1')}@${mzxid}`;
}
