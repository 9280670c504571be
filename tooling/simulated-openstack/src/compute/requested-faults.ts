/** Faults that the metadata of a server requests, and those that tests have planned for it. */

import type { ServerRecord } from './records.js';

/** Returns the behaviour of the next deletion; undefined means success. */
export function deletionBehaviour(server: ServerRecord): 'error' | 'conflict' | 'never' | undefined {
  const behaviour = server.behaviours.find((candidate) => 'delete' in candidate);
  if (behaviour?.delete === 'never') return 'never';
  if (behaviour !== undefined && server.failedDeletions < (behaviour.times ?? 1)) return behaviour.delete;
  const [what, times] = (server.metadata['ostack_fail'] ?? '').split(':');
  return what === 'delete' && server.failedDeletions < Number(times ?? 1) ? 'error' : undefined;
}

export function secondsIn({ metadata }: ServerRecord, key: string): number {
  const seconds = Number(metadata[key] ?? 0);
  return Number.isFinite(seconds) ? seconds : 0;
}
