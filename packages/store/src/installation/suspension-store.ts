/**
 * Suspensions of deletions. If ZooKeeper's data may be lost, restored or another installation's, the absence of a
 * record proves nothing. Until an operator confirms that the records are right, no resource is deleted because of its
 * tags or for the lack of a record. A suspension is a znode, so that it outlives every process.
 */

import { isZooKeeperError, type CallOptions, type Stat } from '@nodepool/zookeeper';
import { sleep, type Timer } from '@nodepool/core';
import type { NodeStore } from '../nodes/node-store.js';
import { bytesOf } from '../codec/codec.js';
import { now, type StoreContext } from '../context.js';
import { nameOf, NODES_ROOT, SUSPENSIONS_ROOT } from '../paths.js';
import { decodeSuspension, INSTALLATION, nameOfScope, NODE_ID, type Suspension } from './suspension.js';

/** Wait (ms) before a failed write is repeated. */
const RETRY_MS = 1000;
/** Wait (ms) between checks of a new connection. */
const CHECK_AGAIN_MS = 50;

/** A suspension that is not in ZooKeeper yet. */
interface Unwritten {
  readonly suspension: Suspension;
  /** Id of the installation that it is about; the process may connect to another one meanwhile. */
  readonly installation: string;
}

/** The suspended deletions of the installation. */
export class SuspensionStore {
  private readonly cached = new Map<string, Suspension>();
  private readonly unwritten = new Map<string, Unwritten>();
  /** Number of ends of suspensions that this process has seen, by name of the suspension. */
  private readonly ends = new Map<string, number>();
  /** Greatest known number of node ids that an installation has issued, by the id of the installation. */
  private readonly issued = new Map<string, number>();
  /** Newest transaction that this process has seen, by installation. */
  private readonly newest = new Map<string, bigint>();
  private readonly closing = new AbortController();
  private retry: Timer | undefined;
  /** Counts the connections; a check belongs to one of them. */
  private connection = 0;
  /** True once the state of the server was checked since the connection was established. */
  private isChecked = false;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly context: StoreContext,
    private readonly options: {
      /** Reads the id of the installation past the cache. */
      readonly installation: (options?: CallOptions) => Promise<string>;
      /** Id of the installation as last seen; undefined if it is not known yet. */
      readonly known: () => string | undefined;
      readonly nodes: Pick<NodeStore, 'onChange'>;
      readonly identifier: string;
      readonly readOnly: boolean;
    },
  ) {
    // The ids in the cache tell more than the reads, which are a minute apart.
    options.nodes.onChange(({ id, after }) => {
      const installation = options.known();
      if (after === undefined || installation === undefined || !NODE_ID.test(id)) return;
      const issued = Number(id) + 1;
      if (issued > (this.issued.get(installation) ?? 0)) this.issued.set(installation, issued);
    });
    context.caches.add({
      root: SUSPENSIONS_ROOT,
      wantsData: (path) => path !== SUSPENSIONS_ROOT,
      onPut: ({ path, data }) => this.put(path, data),
      onRemove: ({ path }) => this.removed(path),
      isUsable: () => options.readOnly || this.isChecked,
    });
    const endNodes = options.nodes.onChange(({ id, before, after }) => {
      if (before === undefined || after === undefined || after.version >= before.version) return;
      this.wentBack(`the record of node ${id} had a newer version`);
    });
    const onState = (): void => {
      if (context.zooKeeper.state === 'connected') void this.checkConnection();
      else this.disconnected();
    };
    context.zooKeeper.on('state', onState);
    this.unsubscribe = () => {
      endNodes();
      context.zooKeeper.off('state', onState);
    };
  }

  start(): void {
    if (this.context.zooKeeper.state === 'connected') void this.checkConnection();
  }

  /** Returns the suspensions as last seen. */
  all(): readonly Suspension[] {
    const unwritten = [...this.unwritten].map(([name, { suspension }]) => [name, suspension] as const);
    return [...new Map([...unwritten, ...this.cached]).values()];
  }

  /** Returns how many suspensions of the provider or of all this process has seen end. */
  endsSeen(provider: string): number {
    return (this.ends.get(INSTALLATION) ?? 0) + (this.ends.get(nameOfScope(provider)) ?? 0);
  }

  /** Resolves with the id of the next node, read past the cache. */
  async nextNodeId(options?: CallOptions): Promise<string> {
    return idOf(await this.issuedIds(options));
  }

  /**
   * Resolves with the suspension that applies to the provider, or to all, read past the cache. Also suspends deletions
   * if the ids of nodes start again, since an older state was restored then.
   */
  async check(provider: string | null, options?: CallOptions): Promise<Suspension | undefined> {
    await this.checkState(options);
    const { zooKeeper } = this.context;
    for (const name of new Set([INSTALLATION, nameOfScope(provider)])) {
      const own = this.unwritten.get(name);
      if (own !== undefined) return own.suspension;
      const path = `${SUSPENSIONS_ROOT}/${name}`;
      try {
        const { data } = await zooKeeper.get(path, options);
        return decodeSuspension(name, data);
      } catch (error) {
        if (!isZooKeeperError(error, 'no-node')) throw error;
      }
    }
    return undefined;
  }

  /** Suspends deletions if the id of the installation changed, or if the ids of nodes start again. */
  private async checkState(options?: CallOptions): Promise<void> {
    const installation = await this.options.installation(options);
    // Nodes may become known while the answer, which is older, is on its way.
    const before = this.issued.get(installation) ?? 0;
    const issued = await this.issuedIds(options);
    if (issued > (this.issued.get(installation) ?? 0)) this.issued.set(installation, issued);
    const zxid = this.context.zooKeeper.lastZxid;
    const newest = this.newest.get(installation) ?? 0n;
    this.newest.set(installation, zxid);
    if (zxid < newest && !this.options.readOnly) {
      const what = `its newest transaction is 0x${zxid.toString(16)}, although 0x${newest.toString(16)} was seen`;
      this.suspendAt(installation, null, `an older state of ZooKeeper was restored: ${what}`, issued);
    }
    if (issued < before && !this.options.readOnly) {
      this.issued.set(installation, issued);
      const ids = `the next node would get the id ${idOf(issued)} again, although ${idOf(before - 1)} was in use`;
      this.suspendAt(installation, null, `an older state of ZooKeeper was restored: ${ids}`, issued);
    }
  }

  /**
   * Checks a new connection before the store is complete, because the ids of new nodes would hide that ids start again.
   * Never rejects: retries until it succeeds, or the connection is lost.
   */
  private async checkConnection(): Promise<void> {
    this.disconnected();
    const { connection } = this;
    const { signal } = this.closing;
    while (connection === this.connection && !signal.aborted && !this.options.readOnly) {
      try {
        await this.checkState({ signal });
        break;
      } catch {
        // The connection was lost, or another process is about to create the id.
        await sleep(this.context.clock, CHECK_AGAIN_MS, signal).catch(() => undefined);
      }
    }
    if (connection !== this.connection || signal.aborted) return;
    this.isChecked = true;
    this.context.caches.update();
  }

  /** Suspends deletions because records show that an older state was restored. */
  private wentBack(reason: string): void {
    const installation = this.options.known();
    if (installation === undefined || this.options.readOnly) return;
    this.suspendAt(installation, null, `an older state of ZooKeeper was restored: ${reason}`, undefined);
  }

  private disconnected(): void {
    const { lastZxid } = this.context.zooKeeper;
    const installation = this.options.known();
    if (installation !== undefined && lastZxid > (this.newest.get(installation) ?? 0n)) {
      this.newest.set(installation, lastZxid);
    }
    this.connection += 1;
    this.isChecked = false;
  }

  /** Suspends the deletions of a provider, or of all. An existing suspension remains as it is. */
  async suspend(provider: string | null, reason: string, options?: CallOptions): Promise<void> {
    const installation = await this.options.installation(options);
    const written = this.suspendAt(installation, provider, reason, await this.issuedIds(options));
    await this.write(written, options);
  }

  /** Ends the suspension of a provider, or that of all. */
  async resume(provider: string | null, options?: CallOptions): Promise<void> {
    const name = nameOfScope(provider);
    this.unwritten.delete(name);
    try {
      await this.context.zooKeeper.delete(`${SUSPENSIONS_ROOT}/${name}`, options);
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) throw error;
    }
  }

  /** Handles another id of the installation, which suspends deletions unless this process has used it before. */
  installationChanged(before: string, after: string): void {
    if (!this.issued.has(before)) this.issued.set(before, 0);
    if (this.issued.has(after) || this.options.readOnly) return;
    this.issued.set(after, 0);
    const reason = `the id of the installation changed from ${before} to ${after} while programs were running`;
    this.suspendAt(after, null, reason, undefined);
  }

  /** Suspends deletions because the known id of the installation replaces one that cannot be read. */
  installationUnreadable(known: string): void {
    if (this.options.readOnly) return;
    this.suspendAt(
      known,
      null,
      `the id of the installation could not be read, and was replaced by ${known}`,
      undefined,
    );
  }

  close(): void {
    this.closing.abort(new Error('the store is closed'));
    this.retry?.cancel();
    this.unsubscribe();
  }

  /** Takes effect in this process at once, and is written in the background. Returns the name of the znode. */
  private suspendAt(installation: string, provider: string | null, reason: string, issued: number | undefined): string {
    const name = nameOfScope(provider);
    if (this.cached.has(name) || this.unwritten.has(name)) return name;
    const suspension = {
      provider,
      reason,
      since: now(this.context),
      by: this.options.identifier,
      nextNode: issued === undefined ? null : idOf(issued),
    };
    this.context.log.error(
      'Deletions of resources without a record are suspended until an operator runs `nodepool orphans confirm`',
      undefined,
      { ...(provider === null ? {} : { provider }), reason },
    );
    this.unwritten.set(name, { suspension, installation });
    void this.writeAll();
    return name;
  }

  /** Never rejects: retries until everything is written or the store is closed. */
  private async writeAll(): Promise<void> {
    const { signal } = this.closing;
    for (const name of [...this.unwritten.keys()]) {
      try {
        await this.write(name, { signal });
      } catch (error) {
        if (signal.aborted || this.context.zooKeeper.state === 'closed') return;
        this.context.log.warn('The suspension of deletions could not be written; retrying', { error });
        this.retry?.cancel();
        this.retry = this.context.clock.schedule(RETRY_MS, () => void this.writeAll());
        return;
      }
    }
  }

  private async write(name: string, options?: CallOptions): Promise<void> {
    const own = this.unwritten.get(name);
    if (own === undefined) return;
    const { zooKeeper } = this.context;
    // A suspension of an ensemble that this process has left is void: it returns to a known one.
    if ((await this.options.installation(options)) === own.installation) {
      const { provider, ...fields } = own.suspension;
      const nextNode = fields.nextNode ?? (await this.nextNodeId(options));
      await this.create(SUSPENSIONS_ROOT, undefined, options);
      await this.create(
        `${SUSPENSIONS_ROOT}/${name}`,
        bytesOf(JSON.stringify({ ...fields, provider, nextNode })),
        options,
      );
      await zooKeeper.sync(SUSPENSIONS_ROOT, options);
    }
    if (this.unwritten.get(name) === own) this.unwritten.delete(name);
  }

  private async create(path: string, data: Uint8Array | undefined, options?: CallOptions): Promise<void> {
    try {
      await this.context.zooKeeper.create(path, data, options);
    } catch (error) {
      if (!isZooKeeperError(error, 'node-exists')) throw error;
    }
  }

  private put(path: string, data: Uint8Array): void {
    if (path === SUSPENSIONS_ROOT) return;
    const name = nameOf(path);
    const suspension = decodeSuspension(name, data);
    if (!this.cached.has(name) && suspension.by !== this.options.identifier) {
      const { provider, reason, by } = suspension;
      this.context.log.warn('Deletions of resources without a record are suspended', { provider, reason, by });
    }
    this.cached.set(name, suspension);
  }

  private removed(path: string): void {
    const name = nameOf(path);
    const suspension = this.cached.get(name);
    if (path === SUSPENSIONS_ROOT || suspension === undefined) return;
    this.cached.delete(name);
    this.ends.set(name, (this.ends.get(name) ?? 0) + 1);
    this.context.log.info('Deletions of resources without a record continue', { provider: suspension.provider });
  }

  /** Resolves with the number of node ids that were issued, which only grows. */
  private async issuedIds(options?: CallOptions): Promise<number> {
    const stat = await this.context.zooKeeper.exists(NODES_ROOT, options);
    return stat === undefined ? 0 : creations(stat);
  }
}

/** Returns how many children were created. ZooKeeper's `cversion` counts creations and deletions. */
function creations({ cversion, numChildren }: Stat): number {
  return (cversion + numChildren) / 2;
}

function idOf(sequence: number): string {
  return String(sequence).padStart(10, '0');
}
