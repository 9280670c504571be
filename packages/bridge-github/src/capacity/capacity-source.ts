/** Asks the registered launchers for what their limits leave, regularly, and tells the capacity of scale sets. */

import {
  answerText,
  Emitter,
  isJsonObject,
  isError,
  TimerQueue,
  withDeadline,
  WorkQueue,
  type Clock,
  type JsonObject,
  type JsonValue,
  type Logger,
  type RandomSource,
  type Resources,
  type TaskSupervisor,
} from '@nodepool/core';
import type { Store } from '@nodepool/store';
import { freeCapacity, type Consumer, type FreeCapacity, type LauncherFree } from './capacity.js';

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
  private readonly ask: AskLauncher;
  private readonly answers = new Map<string, { readonly at: number; readonly free: LauncherFree }>();
  /** Scale sets in service. */
  private readonly sets = new Map<string, () => Consumer>();
  private readonly changes: Emitter<void>;
  private readonly queue: WorkQueue<'launchers'>;
  private removeListener: () => void = () => undefined;

  constructor(private readonly options: CapacityOptions) {
    const { clock, random, log, tasks } = options;
    this.ask = options.ask ?? askOverHttp(clock);
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

  /** Notes a scale set in service. Returns a function that removes it. */
  register(set: string, consumer: () => Consumer): () => void {
    this.sets.set(set, consumer);
    return () => void this.sets.delete(set);
  }

  /** Returns the share of a registered scale set in the number of further nodes that launchers can provide. */
  of(set: string): FreeCapacity {
    const { store, clock } = this.options;
    if (!store.complete) return { nodes: 0, reason: 'ZooKeeper cannot be reached' };
    const consumers = new Map([...this.sets].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, now]) => [name, now()]));
    const consumer = consumers.get(set);
    if (consumer === undefined) return { nodes: 0, reason: 'the scale set is not in service yet' };
    const now = clock.monotonic();
    const ready = [...store.nodes.inState('ready')].filter(
      ({ node, locked }) => !locked && node.allocated_to === null && node.type.includes(consumer.label),
    ).length;
    return freeCapacity(consumer, {
      pools: [...store.components.pools()],
      launchers: [...this.answers.values()].flatMap(({ at, free }) => (now - at > MAX_AGE_MS ? [] : free)),
      ready,
      consumers: [...consumers.values()],
    });
  }

  private async askAll(signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.options;
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
          const free = freeIn(await this.ask(`${url}/status/v1/capacity`, signal));
          this.answers.set(url, { at: clock.monotonic(), free });
        } catch (error) {
          signal.throwIfAborted();
          log.debug('A launcher does not tell its capacity', { url, error: isError(error) ? error.message : error });
        }
      }),
    );
    this.changes.emit();
  }
}

function askOverHttp(clock: Clock): AskLauncher {
  const timers = new TimerQueue(clock, { background: true });
  const onDeadline = (): Error => new Error(`no answer within ${TIMEOUT_MS / 1000} s`);
  return (url, stopped) =>
    withDeadline({ timers, signal: stopped, deadline: clock.monotonic() + TIMEOUT_MS, onDeadline }, async (signal) => {
      const answer = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'error', signal });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      return JSON.parse(await answerText(answer.body, { maxBytes: MAX_BYTES, signal })) as JsonValue;
    });
}

/** Returns what a document of a launcher says. */
export function freeIn(document: JsonValue): LauncherFree {
  const { pools, providers, tenants } = isJsonObject(document) ? document : {};
  return {
    pools: objectsIn(pools).flatMap(({ provider, pool, ignoresProviderQuota, free, needs }) =>
      typeof provider !== 'string' || typeof pool !== 'string'
        ? []
        : {
            ...{ provider, pool, ignoresProviderQuota: ignoresProviderQuota === true, free: amountsIn(free) },
            needs: Object.fromEntries(
              Object.entries(isJsonObject(needs) ? needs : {}).map(([label, need]) => [label, amountsIn(need)]),
            ),
          },
    ),
    providers: byName(providers, 'provider'),
    tenants: byName(tenants, 'tenant'),
  };
}

function byName(value: JsonValue | undefined, key: string): ReadonlyMap<string, Resources> {
  return new Map(
    objectsIn(value).flatMap((each) => {
      const name = each[key];
      return typeof name === 'string' ? [[name, amountsIn(each['free'])] as const] : [];
    }),
  );
}

function amountsIn(value: JsonValue | undefined): Resources {
  const entries = Object.entries(isJsonObject(value) ? value : {});
  return Object.fromEntries(entries.filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
}

function objectsIn(value: JsonValue | undefined): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter((each): each is JsonObject => isJsonObject(each)) : [];
}
