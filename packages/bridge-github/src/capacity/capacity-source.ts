/** Asks the registered launchers for their use and limits, regularly, and tells the capacity of labels. */

import {
  Emitter,
  isJsonObject,
  isError,
  WorkQueue,
  type Clock,
  type JsonObject,
  type JsonValue,
  type Logger,
  type RandomSource,
  type TaskSupervisor,
} from '@nodepool/core';
import type { Store } from '@nodepool/store';
import { freeCapacity, shareOf, type FreeCapacity, type InstanceUse, type ProviderUse } from './capacity.js';

/** Interval of the questions (ms). */
const INTERVAL_MS = 5000;
const TIMEOUT_MS = 4000;
/** An older answer of a launcher does not count (ms). */
const MAX_AGE_MS = 30_000;
const MAX_BYTES = 8 * 2 ** 20;

/** Resolves with a document of a launcher's web endpoint. */
export type AskLauncher = (url: string, signal: AbortSignal) => Promise<JsonValue>;

export interface CapacityOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly tasks: TaskSupervisor;
  /** Default: HTTP. */
  readonly ask?: AskLauncher;
}

export class CapacitySource {
  private readonly answers = new Map<string, { readonly at: number; readonly uses: readonly ProviderUse[] }>();
  /** Scale sets in service, by label. */
  private readonly sets = new Map<string, string[]>();
  private readonly changes: Emitter<void>;
  private readonly queue: WorkQueue<'launchers'>;
  private removeListener: () => void = () => undefined;

  constructor(private readonly options: CapacityOptions) {
    const { clock, random, log, tasks } = options;
    this.changes = new Emitter((error) => log.error('A change of the capacity was not noticed', error));
    this.queue = new WorkQueue({
      ...{ clock, random, log, tasks },
      name: () => 'ask launchers for their capacity',
      reconcile: async (_key, { signal }) => {
        await this.askAll(signal);
        return { requeueAfterMs: INTERVAL_MS };
      },
    });
  }

  start(): void {
    this.removeListener = this.options.store.components.onChange(() => {
      this.queue.add('launchers');
      this.changes.emit();
    });
    this.queue.add('launchers');
  }

  async stop(): Promise<void> {
    this.removeListener();
    this.queue.abort(new Error('the bridge stops'));
    await this.queue.idle();
  }

  onChange(listener: () => void): () => void {
    return this.changes.on(listener);
  }

  /** Notes a scale set that uses a label. Returns a function that removes it. */
  register(label: string, set: string): () => void {
    const sets = this.sets.get(label) ?? [];
    this.sets.set(label, [...sets, set].sort());
    return () =>
      this.sets.set(
        label,
        (this.sets.get(label) ?? []).filter((each) => each !== set),
      );
  }

  /** Returns the share of a scale set in the number of further nodes that launchers can provide. */
  of(label: string, set: string): FreeCapacity {
    const { store, clock } = this.options;
    if (!store.complete) return { nodes: 0, reason: 'ZooKeeper cannot be reached' };
    const now = clock.monotonic();
    const uses = [...this.answers.values()].flatMap(({ at, uses: told }) => (now - at > MAX_AGE_MS ? [] : told));
    const ready = [...store.nodes.inState('ready')].filter(
      ({ node, locked }) => !locked && node.allocated_to === null && node.type.includes(label),
    ).length;
    const { nodes, reason } = freeCapacity(label, store.components.pools(), uses, ready);
    const sets = this.sets.get(label) ?? [];
    const share = shareOf(nodes, Math.max(1, sets.length), Math.max(0, sets.indexOf(set)));
    return { nodes: share, reason: sets.length > 1 ? `a share of ${share}: ${reason}` : reason };
  }

  private async askAll(signal: AbortSignal): Promise<void> {
    const { store, clock, log, ask = askOverHttp } = this.options;
    const urls = new Set<string>();
    for (const { component } of store.components.all('launcher')) {
      const { webapp } = component;
      if (webapp !== undefined)
        urls.add(`http://${webapp.host.includes(':') ? `[${webapp.host}]` : webapp.host}:${webapp.port}`);
    }
    for (const url of this.answers.keys()) if (!urls.has(url)) this.answers.delete(url);
    await Promise.all(
      [...urls].map(async (url) => {
        try {
          const uses = usesIn(await ask(`${url}/status/v1/providers`, signal));
          this.answers.set(url, { at: clock.monotonic(), uses });
        } catch (error) {
          signal.throwIfAborted();
          log.debug('A launcher does not tell its capacity', { url, error: isError(error) ? error.message : error });
        }
      }),
    );
    this.changes.emit();
  }
}

async function askOverHttp(url: string, signal: AbortSignal): Promise<JsonValue> {
  const answer = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  let text = '';
  const decoder = new TextDecoder();
  for await (const piece of answer.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.length > MAX_BYTES) throw new RangeError('the answer is too long');
  }
  return JSON.parse(text) as JsonValue;
}

/** Returns the providers of a document that the launcher serves itself. */
export function usesIn(document: JsonValue): readonly ProviderUse[] {
  if (!isJsonObject(document)) return [];
  return objectsIn(document['providers']).flatMap((provider) => {
    const { name, state } = provider;
    if (typeof name !== 'string' || state === 'elsewhere' || state === 'gone') return [];
    const pools = objectsIn(provider['pools']).flatMap((pool) => {
      const use = instancesIn(pool['usage']);
      return typeof pool['name'] === 'string' && use !== undefined ? [[pool['name'], use] as const] : [];
    });
    // A provider without a limit shows no use.
    const instances = instancesIn(provider['usage']) ?? { used: 0, limit: null };
    return pools.length === 0 ? [] : [{ provider: name, instances, pools: new Map(pools) }];
  });
}

function instancesIn(usage: JsonValue | undefined): InstanceUse | undefined {
  const found = objectsIn(usage).find(({ resource }) => resource === 'instances');
  if (found === undefined) return undefined;
  const { used, limit } = found;
  return { used: typeof used === 'number' ? used : 0, limit: typeof limit === 'number' ? limit : null };
}

function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isJsonObject(each)) : [];
}
