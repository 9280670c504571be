/**
 * The id of the installation: one per ZooKeeper root, created once, and the tag `nodepool_installation` on every cloud
 * resource and image. It distinguishes them from those of another installation with the same provider names.
 */

import { ensurePath, isZooKeeperError, type CallOptions } from '@nodepool/zookeeper';
import { sleep } from '@nodepool/core';
import { NODEPOOL_ROOT, INSTALLATION_PATH } from '../paths.js';
import type { StoreContext } from '../context.js';
import { InstallationIdError } from '../errors.js';
import { bytesOf } from '../codec/codec.js';

/** Characters and length (40) that every cloud accepts in a label. */
const VALID = /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/;

/** Length of new ids: short, because some clouds store all tags together in 255 characters. */
const NEW_ID_LENGTH = 16;

/** Wait (ms) between reads of an id that another process is about to create. */
const READ_AGAIN_MS = 50;

/** The id of the installation, see `INSTALLATION_PATH`. */
export class InstallationStore {
  /** The id as last seen; undefined before the first read. */
  known: string | undefined;

  constructor(
    private readonly context: StoreContext,
    private readonly options: {
      /** Called when the server has no valid id. */
      readonly onMissing: () => void;
      /** Called with the former and the present id when the id changes. */
      readonly onChange: (before: string, after: string) => void;
      /** Called with the known id before it replaces one that cannot be read. */
      readonly onUnreadable: (known: string) => void;
      /** Suspends deletions because an operator sets the id. */
      readonly suspend: (id: string, options?: CallOptions) => Promise<void>;
    },
  ) {
    context.caches.add({
      root: INSTALLATION_PATH,
      wantsData: (path) => path === INSTALLATION_PATH,
      isUsable: () => this.isKnown,
      onPut: ({ path, data }) => {
        if (path === INSTALLATION_PATH) this.learn(data);
      },
      onRemove: ({ path }) => {
        if (path === INSTALLATION_PATH) options.onMissing();
      },
    });
  }

  /** The id as last seen; throws before the store is `ready`. */
  get id(): string {
    if (this.known !== undefined) return this.known;
    throw new Error('the id of the installation is not known yet; wait until the store is ready');
  }

  /** Reads past the cache. Rejects with `InstallationIdError` if the data is not a valid id. */
  async read(options?: CallOptions): Promise<string> {
    const { data } = await this.context.zooKeeper.get(INSTALLATION_PATH, options);
    const id = checkInstallationId(textOf(data));
    this.learn(data);
    return id;
  }

  /**
   * Replaces the id and suspends deletions, because resources with the new id may have no records here; running
   * processes follow. Rejects with `InstallationIdError` if the text is not a valid id.
   */
  async set(id: string, options?: CallOptions): Promise<void> {
    const data = bytesOf(checkInstallationId(id));
    const { zooKeeper } = this.context;
    if ((await zooKeeper.exists(INSTALLATION_PATH, options)) === undefined) {
      // An empty ensemble: the id is set before the first launcher creates another one.
      await ensurePath(zooKeeper, NODEPOOL_ROOT, options);
      await zooKeeper.create(INSTALLATION_PATH, data, options);
      await this.options.suspend(id, options);
      return;
    }
    await this.options.suspend(id, options);
    await zooKeeper.set(INSTALLATION_PATH, data, options);
  }

  /** Resolves once the id is known, shortly after the root znodes were created. */
  async ready(options: CallOptions = {}): Promise<void> {
    const { clock } = this.context;
    const deadline = clock.monotonic() + (options.timeoutMs ?? Infinity);
    while (!this.isKnown) {
      try {
        const { data } = await this.context.zooKeeper.get(INSTALLATION_PATH, options);
        if (this.learn(data)) return;
      } catch (error) {
        if (!isZooKeeperError(error, 'no-node') || clock.monotonic() >= deadline) throw error;
      }
      await sleep(clock, READ_AGAIN_MS, options.signal);
    }
  }

  /**
   * Writes an id if the server has no valid one. A server without an id gets a new one even if this process knows one:
   * it may belong to another installation, which would delete the resources with the known id.
   */
  async ensure(options?: CallOptions): Promise<void> {
    const { zooKeeper, random, log } = this.context;
    const fresh = random.uuidHex().slice(0, NEW_ID_LENGTH);
    try {
      await zooKeeper.create(INSTALLATION_PATH, bytesOf(fresh), options);
      return;
    } catch (error) {
      if (!isZooKeeperError(error, 'node-exists')) throw error;
    }
    const there = await zooKeeper.get(INSTALLATION_PATH, options);
    if (VALID.test(textOf(there.data))) return;
    log.warn('The id of the installation cannot be read and is replaced', { path: INSTALLATION_PATH });
    const { known } = this;
    // The state may be that of another installation, whose records and resources differ.
    if (known !== undefined) this.options.onUnreadable(known);
    const data = bytesOf(known ?? fresh);
    try {
      await zooKeeper.set(INSTALLATION_PATH, data, { ...options, version: there.stat.version });
    } catch (error) {
      // Another process has replaced it.
      if (!isZooKeeperError(error, 'bad-version')) throw error;
    }
  }

  private get isKnown(): boolean {
    return this.known !== undefined;
  }

  /** Stores the id. Returns false if the data is not a valid id. */
  private learn(data: Uint8Array): boolean {
    const id = textOf(data);
    if (!VALID.test(id)) {
      this.options.onMissing();
      return false;
    }
    const before = this.known;
    this.known = id;
    if (before !== undefined && before !== id) {
      this.context.log.warn('The id of the installation has changed', { before, now: id });
      this.options.onChange(before, id);
    }
    this.context.caches.update();
    return true;
  }
}

function textOf(data: Uint8Array): string {
  return new TextDecoder().decode(data).trim();
}

/** Returns the id. Throws `InstallationIdError` if it is not valid. */
export function checkInstallationId(id: string): string {
  if (VALID.test(id)) return id;
  throw new InstallationIdError(id);
}
