/** Observes the cloud through its APIs while a launcher works. */

import { isJsonObject, sleep, systemClock, type JsonObject } from '@nodepool/core';
import { ApiClient, textOf } from '@nodepool/simulated-openstack';

const POLL_MS = 400;
/** Time for the launcher to start and for nova to accept servers (ms). */
const SEEN_TIMEOUT_MS = 300_000;
/** Time after which nova no longer lists deleted servers (ms). */
const EMPTY_TIMEOUT_MS = 60_000;

/** Remaining resources of a provider in the cloud. */
export interface RemainingResources {
  readonly servers: number;
  readonly ports: number;
  readonly floatingIps: number;
  readonly volumes: number;
}

export class CloudWatch {
  /** Maximum number of servers that the project had at the same time, foreign ones included. */
  mostServers = 0;
  /** Observed servers by launch attempt. */
  private readonly attempts = new Map<string, Set<string>>();
  private readonly ours = new Set<string>();
  private readonly stopped = new AbortController();
  private readonly changed = new EventTarget();
  private watching: Promise<void> = Promise.resolve();

  private constructor(
    private client: ApiClient,
    private readonly cloudsYaml: string,
    private readonly cloud: string,
    private readonly provider: string,
    /** Ids of the resources from before the scenario. */
    private readonly before: ReadonlySet<string>,
  ) {}

  /** Starts to observe the servers of a cloud's project, in particular those of one provider. */
  static async start(cloudsYaml: string, cloud: string, provider: string): Promise<CloudWatch> {
    const client = await ApiClient.logIn(cloudsYaml, cloud);
    const before = new Set((await everything(client)).map(({ id }) => id));
    const watch = new CloudWatch(client, cloudsYaml, cloud, provider, before);
    watch.watching = watch.poll();
    return watch;
  }

  /** Number of servers of the provider that were observed so far, including deleted ones. */
  get seen(): number {
    return this.ours.size;
  }

  /** Number of launch attempts with more than one server. */
  get duplicates(): number {
    return [...this.attempts.values()].filter((servers) => servers.size > 1).length;
  }

  /** Resolves once this many servers of the provider were observed. Rejects after a time limit. */
  async untilSeen(count: number): Promise<void> {
    const deadline = systemClock.monotonic() + SEEN_TIMEOUT_MS;
    while (this.seen < count) {
      if (systemClock.monotonic() > deadline)
        throw new Error(`only ${this.seen} of ${count} servers were seen in nova`);
      await new Promise((resolve) => this.changed.addEventListener('looked', resolve, { once: true }));
    }
  }

  /**
   * Stops the observation. Resolves with the remaining resources once there are none, or their number no longer
   * decreases.
   */
  async end(): Promise<RemainingResources> {
    await this.stop();
    this.client = await ApiClient.logIn(this.cloudsYaml, this.cloud);
    const deadline = systemClock.monotonic() + EMPTY_TIMEOUT_MS;
    for (;;) {
      const left = await this.left();
      const none = Object.values(left).every((count) => count === 0);
      if (none || systemClock.monotonic() > deadline) return left;
      await sleep(systemClock, POLL_MS);
    }
  }

  /** Stops the observation. Idempotent. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await this.watching;
  }

  private async left(): Promise<RemainingResources> {
    const items = (await everything(this.client)).filter(({ id, kind, owner }) => {
      if (kind === 'servers') return owner === this.provider;
      // A new resource that belongs to one of our servers or to none.
      return !this.before.has(id) && (owner === '' || this.ours.has(owner));
    });
    const count = (kind: Item['kind']): number => items.filter((item) => item.kind === kind).length;
    return {
      servers: count('servers'),
      ports: count('ports'),
      floatingIps: count('floatingIps'),
      volumes: count('volumes'),
    };
  }

  private async poll(): Promise<void> {
    while (!this.stopped.signal.aborted) {
      const answer = await orNothing(this.client.get('compute', '/servers/detail'));
      if (answer?.status === 200) this.look(answer.list('servers'));
      else if (answer?.status === 401)
        this.client = (await orNothing(ApiClient.logIn(this.cloudsYaml, this.cloud))) ?? this.client;
      this.changed.dispatchEvent(new Event('looked'));
      await sleep(systemClock, POLL_MS, this.stopped.signal).catch(() => undefined);
    }
  }

  private look(servers: readonly JsonObject[]): void {
    this.mostServers = Math.max(this.mostServers, servers.length);
    for (const server of servers) {
      const { metadata, id } = server;
      if (!isJsonObject(metadata) || metadata['nodepool_provider_name'] !== this.provider) continue;
      const attempt = textOf(metadata['nodepool_launch_attempt']);
      this.attempts.set(attempt, (this.attempts.get(attempt) ?? new Set()).add(textOf(id)));
      this.ours.add(textOf(id));
    }
  }
}

interface Item {
  readonly kind: keyof RemainingResources;
  readonly id: string;
  /**
   * The provider in a server's metadata, or the server that another resource belongs to; empty if it belongs to none.
   */
  readonly owner: string;
}

async function everything(client: ApiClient): Promise<Item[]> {
  const [servers, ports, floating, volumes] = await Promise.all([
    client.get('compute', '/servers/detail'),
    client.get('network', '/ports'),
    client.get('network', '/floatingips'),
    client.get('volume', '/volumes/detail'),
  ]);
  return [
    ...servers.list('servers').map(({ id, metadata }): Item => ({
      kind: 'servers',
      id: textOf(id),
      owner: isJsonObject(metadata) ? textOf(metadata['nodepool_provider_name']) : '',
    })),
    ...ports
      .list('ports')
      .filter((port) => !textOf(port['device_owner']).startsWith('network:'))
      .map((port): Item => ({ kind: 'ports', id: textOf(port['id']), owner: textOf(port['device_id']) })),
    ...floating.list('floatingips').map(({ id, port_details }): Item => ({
      kind: 'floatingIps',
      id: textOf(id),
      owner: isJsonObject(port_details) ? textOf(port_details['device_id']) : '',
    })),
    ...volumes.list('volumes').map(({ id, attachments }): Item => {
      const [attachment] = Array.isArray(attachments) ? attachments.filter(isJsonObject) : [];
      return { kind: 'volumes', id: textOf(id), owner: textOf(attachment?.['server_id']) };
    }),
  ];
}

/**
 * Returns undefined if the call fails. It is repeated soon, because keystone and nova may be unreachable for a moment.
 */
async function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch {
    return undefined;
  }
}
