/**
 * The npm package `zookeeper` (a binding of the C client) with the interface of the behaviour suite. It must be
 * compiled, so it is not a dependency; `tooling/zookeeper-reference/install.sh` installs it.
 */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Acl, CreateMode, CreateOptions, Session, Stat, WatchEvent } from '../../src/index.js';
import { CREATE_FLAGS } from '../../src/client/protocol.js';
import { serverError } from '../../src/client/server-errors.js';
import type { PlainZooKeeper } from '../behaviour/harness.js';

const FOLDER = join(__dirname, '../../../../.tools/zookeeper-reference/node_modules/zookeeper');

/** True if the package is installed and compiled. */
export const isInstalled = existsSync(join(FOLDER, 'build'));

interface NativeStat extends Omit<Stat, 'czxid' | 'mzxid' | 'pzxid' | 'ctime' | 'mtime' | 'ephemeralOwner'> {
  readonly czxid: number;
  readonly mzxid: number;
  readonly pzxid: number;
  readonly ctime: Date;
  readonly mtime: Date;
  /** Hexadecimal. */
  readonly ephemeralOwner: string;
}

interface NativeAcl {
  readonly perms: number;
  readonly scheme: string;
  readonly auth: string;
}

/** Callback with code, text and result. */
type Callback<Results extends unknown[]> = (code: number, text: string, ...results: Results) => void;
type Watcher = (type: number, state: number, path: string) => void;

/** The used part of the package. Each call returns a code; if it is not 0, the callback is never called. */
interface NativeClient {
  readonly client_id: string;
  init(config: Readonly<Record<string, unknown>>): void;
  once(event: 'connect', listener: () => void): void;
  close(): void;
  add_auth(scheme: string, auth: string, callback: Callback<[]>): number;
  a_create(path: string, data: Buffer, flags: number, callback: Callback<[string]>): number;
  a_delete_(path: string, version: number, callback: Callback<[]>): number;
  a_exists(path: string, watch: boolean, callback: Callback<[NativeStat]>): number;
  aw_exists(path: string, watcher: Watcher, callback: Callback<[NativeStat]>): number;
  a_get(path: string, watch: boolean, callback: Callback<[NativeStat, Buffer | null]>): number;
  aw_get(path: string, watcher: Watcher, callback: Callback<[NativeStat, Buffer | null]>): number;
  a_set(path: string, data: Buffer, version: number, callback: Callback<[NativeStat]>): number;
  a_get_children2(path: string, watch: boolean, callback: Callback<[string[], NativeStat]>): number;
  aw_get_children2(path: string, watcher: Watcher, callback: Callback<[string[], NativeStat]>): number;
  a_get_acl(path: string, callback: Callback<[NativeAcl[], NativeStat]>): number;
  a_set_acl(path: string, version: number, acl: readonly NativeAcl[], callback: Callback<[]>): number;
  a_sync(path: string, callback: Callback<[string]>): number;
}

const EVENT_TYPES: Readonly<Record<number, WatchEvent['type']>> = {
  1: 'created',
  2: 'deleted',
  3: 'changed',
  4: 'children',
};
const ANY_VERSION = -1;

type WatchOptions = { readonly watch?: (event: WatchEvent) => void } | undefined;

export class NpmClient implements PlainZooKeeper {
  private closed = false;

  private constructor(private readonly native: NativeClient) {}

  /** `servers` includes the chroot, as for this client. */
  static async connect(servers: string, timeoutMs: number): Promise<NpmClient> {
    const Native = createRequire(__filename)(FOLDER) as new () => NativeClient;
    const native = new Native();
    const connected = new Promise<void>((resolve) => native.once('connect', () => resolve()));
    // Without the limit, the package treats an answer in more than ten pieces as the end of the session.
    const settings = { debug_level: 1, data_as_buffer: true, response_counter_limit: 2 ** 30 };
    native.init({ connect: servers, timeout: timeoutMs, ...settings });
    await connected;
    return new NpmClient(native);
  }

  /** Only the id is valid. */
  get session(): Session {
    const id = BigInt(`0x${this.native.client_id}`);
    return { id, timeoutMs: 0, lost: new AbortController().signal, confirmed: true, readOnly: false };
  }

  async authenticate(scheme: string, auth: string): Promise<void> {
    await this.ask<[]>('auth', undefined, (callback) => this.native.add_auth(scheme, auth, callback));
  }

  /** Reads the stat, because the package returns none for a creation. */
  async create(path: string, data?: Uint8Array, options?: CreateOptions): Promise<{ path: string; stat: Stat }> {
    if (options?.acl !== undefined) throw new Error('the npm package cannot create with an access control list');
    const mode: CreateMode = options?.mode ?? 'persistent';
    const flags = CREATE_FLAGS[mode];
    const [created] = await this.ask<[string]>('create', path, (callback) =>
      this.native.a_create(path, Buffer.from(data ?? []), flags, callback),
    );
    return { path: created, stat: await this.statOf(created) };
  }

  async delete(path: string, options?: { version?: number }): Promise<void> {
    const version = options?.version ?? ANY_VERSION;
    await this.ask<[]>('delete', path, (callback) => this.native.a_delete_(path, version, callback));
  }

  async exists(path: string, options?: WatchOptions): Promise<Stat | undefined> {
    const watcher = watcherOf(options);
    return this.ask<[NativeStat]>('exists', path, (callback) =>
      watcher === undefined
        ? this.native.a_exists(path, false, callback)
        : this.native.aw_exists(path, watcher, callback),
    ).then(
      ([stat]) => toStat(stat),
      (error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === 'no-node') return undefined;
        throw error;
      },
    );
  }

  async get(path: string, options?: WatchOptions): Promise<{ data: Uint8Array; stat: Stat }> {
    const watcher = watcherOf(options);
    const [stat, data] = await this.ask<[NativeStat, Buffer | null]>('get', path, (callback) =>
      watcher === undefined ? this.native.a_get(path, false, callback) : this.native.aw_get(path, watcher, callback),
    );
    return { data: data ?? Buffer.alloc(0), stat: toStat(stat) };
  }

  async set(path: string, data: Uint8Array, options?: { version?: number }): Promise<Stat> {
    const version = options?.version ?? ANY_VERSION;
    const [stat] = await this.ask<[NativeStat]>('set', path, (callback) =>
      this.native.a_set(path, Buffer.from(data), version, callback),
    );
    return toStat(stat);
  }

  async children(path: string, options?: WatchOptions): Promise<{ children: readonly string[]; stat: Stat }> {
    const watcher = watcherOf(options);
    const [children, stat] = await this.ask<[string[], NativeStat]>('children', path, (callback) =>
      watcher === undefined
        ? this.native.a_get_children2(path, false, callback)
        : this.native.aw_get_children2(path, watcher, callback),
    );
    return { children, stat: toStat(stat) };
  }

  async getAcl(path: string): Promise<{ acl: readonly Acl[]; stat: Stat }> {
    const [acl, stat] = await this.ask<[NativeAcl[], NativeStat]>('getAcl', path, (callback) =>
      this.native.a_get_acl(path, callback),
    );
    const entries = acl.map(({ perms, scheme, auth }) => ({ permissions: perms, scheme, id: auth }));
    return { acl: entries, stat: toStat(stat) };
  }

  /** Reads the stat, because the package returns none. */
  async setAcl(path: string, acl: readonly Acl[], options?: { version?: number }): Promise<Stat> {
    const entries = acl.map(({ permissions, scheme, id }) => ({ perms: permissions, scheme, auth: id }));
    const version = options?.version ?? ANY_VERSION;
    await this.ask<[]>('setAcl', path, (callback) => this.native.a_set_acl(path, version, entries, callback));
    return this.statOf(path);
  }

  async sync(path: string): Promise<void> {
    await this.ask<[string]>('sync', path, (callback) => this.native.a_sync(path, callback));
  }

  close(): Promise<void> {
    // A second call aborts the process.
    if (!this.closed) this.native.close();
    this.closed = true;
    return Promise.resolve();
  }

  private async statOf(path: string): Promise<Stat> {
    const [stat] = await this.ask<[NativeStat]>('exists', path, (callback) =>
      this.native.a_exists(path, false, callback),
    );
    return toStat(stat);
  }

  private ask<Results extends unknown[]>(
    operation: string,
    path: string | undefined,
    issue: (callback: Callback<Results>) => number,
  ): Promise<Results> {
    return new Promise((resolve, reject) => {
      const refused = issue((code, _text, ...results) => {
        if (code === 0) resolve(results);
        else reject(serverError(code, { operation, path }));
      });
      if (typeof refused === 'number' && refused !== 0) reject(serverError(refused, { operation, path }));
    });
  }
}

/** Filters out session events, which the package's watchers receive too. */
function watcherOf(options: WatchOptions): Watcher | undefined {
  const watch = options?.watch;
  if (watch === undefined) return undefined;
  return (typeNumber, _state, path) => {
    const type = EVENT_TYPES[typeNumber];
    if (type !== undefined) watch({ type, path });
  };
}

function toStat(stat: NativeStat): Stat {
  return {
    czxid: BigInt(stat.czxid),
    mzxid: BigInt(stat.mzxid),
    ctime: stat.ctime.getTime(),
    mtime: stat.mtime.getTime(),
    version: stat.version,
    cversion: stat.cversion,
    aversion: stat.aversion,
    ephemeralOwner: BigInt(`0x${stat.ephemeralOwner}`),
    dataLength: stat.dataLength,
    numChildren: stat.numChildren,
    pzxid: BigInt(stat.pzxid),
  };
}
