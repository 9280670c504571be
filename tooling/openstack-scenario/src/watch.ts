/** Watches the cloud from outside, through its APIs, while a launcher works. */

import { isJsonObject, sleep, systemClock, type JsonObject } from '@nodepool/core';
import { ApiClient, textOf } from '@nodepool/simulated-openstack';

const POLL_MS = 400;
/** The launcher has to start, and nova to accept servers. */
const SEEN_TIMEOUT_MS = 300_000;
/** Nova forgets what is deleted a little after it says that it is. */
const EMPTY_TIMEOUT_MS = 60_000;

/** What there is of a provider in the cloud. */
export interface Left {
  readonly servers: number;
  readonly ports: number;
  readonly floatingIps: number;
  readonly volumes: number;
}

export class CloudWatch {
  /** Most servers that the project had at once, whoever made them. */
  mostServers = 0;
  /** Servers seen, by the launch attempt that they were made for. */
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
    /** Ids of what was there before. */
    private readonly before: ReadonlySet<string>,
  ) {}

  /** Begins to watch the servers of a cloud's project, those of one provider above all. */
  static async start(cloudsYaml: string, cloud: string, provider: string): Promise<CloudWatch> {
    const client = await ApiClient.logIn(cloudsYaml, cloud);
    const before = new Set((await everything(client)).map(({ id }) => id));
    const watch = new CloudWatch(client, cloudsYaml, cloud, provider, before);
    watch.watching = watch.poll();
    return watch;
  }

  /** Servers of the provider that were seen so far, gone ones included. */
  get seen(): number {
    return this.ours.size;
  }

  /** Launch attempts with more than one server. */
  get twins(): number {
    return [...this.attempts.values()].filter((servers) => servers.size > 1).length;
  }

  /** Resolves once so many servers of the provider were seen. Rejects when that takes too long. */
  async untilSeen(count: number): Promise<void> {
    const deadline = systemClock.monotonic() + SEEN_TIMEOUT_MS;
    while (this.seen < count) {
      if (systemClock.monotonic() > deadline)
        throw new Error(`only ${this.seen} of ${count} servers were seen in nova`);
      await new Promise((resolve) => this.changed.addEventListener('looked', resolve, { once: true }));
    }
  }

  /** Stops watching, and says what is left of the provider once that is nothing, or does not become less any more. */
  async end(): Promise<Left> {
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

  /** Stops watching. Idempotent. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await this.watching;
  }

  private async left(): Promise<Left> {
    const items = (await everything(this.client)).filter(({ id, kind, owner }) => {
      if (kind === 'servers') return owner === this.provider;
      // Of our servers, or of none that there is; and not there before the show.
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
  readonly kind: keyof Left;
  readonly id: string;
  /** Of a server: the provider in its metadata; of another: the server that it belongs to; empty where it belongs to none. */
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

/** A look that fails is made again soon: keystone and nova may be away for a moment. */
async function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch {
    return undefined;
  }
}
