/** Waits for conditions in ZooKeeper that launchers bring about. */

import { isZooKeeperError, type PersistentWatch, type ZooKeeper } from '@nodepool/zookeeper';

const NODES = '/nodepool/nodes';
const POOLS = '/nodepool/components/pool';

/** Resolves when the registered pools, except those in `ignoring`, offer all of the labels. */
export async function labelsOffered(
  zooKeeper: ZooKeeper,
  labels: readonly string[],
  signal: AbortSignal,
  ignoring: ReadonlySet<string> = new Set(),
): Promise<void> {
  await conditionMet(zooKeeper, POOLS, signal, async () => {
    const offered = new Set<unknown>();
    for (const name of await registeredPools(zooKeeper)) {
      if (ignoring.has(name)) continue;
      const pool = decode((await zooKeeper.get(`${POOLS}/${name}`)).data);
      if (Array.isArray(pool['supported_labels'])) for (const label of pool['supported_labels']) offered.add(label);
    }
    return labels.every((label) => offered.has(label));
  });
}

/** Returns the names of the znodes with which launchers have registered their pools. */
export async function registeredPools(zooKeeper: ZooKeeper): Promise<ReadonlySet<string>> {
  try {
    return new Set((await zooKeeper.children(POOLS)).children);
  } catch (error) {
    if (isZooKeeperError(error, 'no-node')) return new Set();
    throw error;
  }
}

/** Resolves when at most `but` node records are left. A launcher must have created their parent znode. */
export async function noNodesLeft(zooKeeper: ZooKeeper, signal: AbortSignal, but = 0): Promise<void> {
  await conditionMet(zooKeeper, NODES, signal, async () => (await zooKeeper.children(NODES)).children.length <= but);
}

/**
 * Resolves when `test` returns true. It is called after every change at or below `path`, without overlap. A test that
 * fails because a znode was deleted meanwhile is repeated, since the deletion is also a change.
 */
export async function conditionMet(
  zooKeeper: ZooKeeper,
  path: string,
  signal: AbortSignal,
  test: () => Promise<boolean>,
): Promise<void> {
  signal.throwIfAborted();
  let asking = false;
  let askAgain = false;
  let watch: PersistentWatch | undefined;
  let giveUp = (): void => undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const ask = async (): Promise<void> => {
        askAgain = true;
        if (asking) return;
        asking = true;
        while (askAgain) {
          askAgain = false;
          try {
            if (await test()) resolve();
          } catch (error) {
            if (!isZooKeeperError(error, 'no-node')) reject(error instanceof Error ? error : new Error(String(error)));
          }
        }
        asking = false;
      };
      const changed = (): void => void ask();
      giveUp = () => reject(signal.reason as Error);
      signal.addEventListener('abort', giveUp, { once: true });
      watch = zooKeeper.watch(path, 'persistent-recursive', { onEvent: changed, onReset: changed });
    });
  } finally {
    signal.removeEventListener('abort', giveUp);
    watch?.close();
  }
}

function decode(data: Uint8Array): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(Buffer.from(data).toString('utf8'));
  if (typeof value !== 'object' || value === null) throw new Error(`a JSON object was expected, not ${String(value)}`);
  return value as Readonly<Record<string, unknown>>;
}
