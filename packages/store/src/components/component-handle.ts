/** A component of this process in the registry: an ephemeral znode, recreated whenever it disappears, until closed. */

import { isZooKeeperError, type CallOptions, type Session } from '@nodepool/zookeeper';
import { abortReason } from '@nodepool/core';
import { encodeComponent } from './component-codec.js';
import type { ComponentData } from './component.js';
import type { StoreContext } from '../context.js';
import { bytesOf } from '../codec/codec.js';
import { componentsPath } from '../paths.js';
import { childrenOf } from '../znodes-below.js';

/** Wait (ms) after an error that does not say when to retry. */
const RETRY_MS = 1000;

/** The registered znode, as last known. */
interface Registered {
  readonly path: string;
  readonly session: bigint;
  /** The component that the znode holds. */
  readonly content: ComponentData;
  /** True until the first write if a search found the znode: another registration may have created and deleted it. */
  readonly isGuess?: boolean;
}

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** A component that this process registers. */
export class ComponentHandle<C extends ComponentData> {
  private present: C;
  private registration: Registered | undefined;
  /** The session of a creation whose outcome is still unknown. */
  private unresolved: Session | undefined;
  private working = false;
  private readonly closing = new AbortController();
  private waiters: Waiter[] = [];
  private readonly onSession = (): void => this.wake();

  constructor(
    private readonly context: StoreContext,
    component: C,
    /** Returns true if a path belongs to another registration of this process. */
    private readonly isTaken: (path: string) => boolean,
    private readonly onClosed: () => void,
  ) {
    this.present = component;
    context.zooKeeper.on('session', this.onSession);
    this.wake();
  }

  get component(): C {
    return this.present;
  }

  get path(): string | undefined {
    return this.registration?.path;
  }

  /** Resolves once the component is registered. */
  async registered(options?: CallOptions): Promise<void> {
    await this.settled(options);
  }

  async update(change: Partial<C>): Promise<void> {
    this.present = { ...this.present, ...change };
    await this.settled();
  }

  async close(): Promise<void> {
    this.closing.abort(new Error('the component is closed'));
    await this.settled();
  }

  /** Handles the deletion of the znode. */
  vanished(path: string): void {
    if (this.registration?.path !== path) return;
    this.forget(this.context.zooKeeper.session);
    this.wake();
  }

  /** Resolves once the registry holds the present component. */
  private settled(options?: CallOptions): Promise<void> {
    // While work is in progress, the state may still change, e.g. by a creation without an answer yet.
    if (this.isSettled() && !this.working) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const signal = options?.signal;
      const finish = (): void => {
        this.waiters = this.waiters.filter((other) => other !== waiter);
        signal?.removeEventListener('abort', onAbort);
        timer?.cancel();
      };
      const waiter: Waiter = {
        resolve: () => {
          finish();
          resolve();
        },
        reject: (error) => {
          finish();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      };
      const onAbort = (): void => waiter.reject(signal === undefined ? undefined : abortReason(signal));
      const timer =
        options?.timeoutMs === undefined
          ? undefined
          : this.context.clock.schedule(options.timeoutMs, () =>
              waiter.reject(new Error(`${this.describe()} was not registered in time; is ZooKeeper reachable?`)),
            );
      this.waiters.push(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
      this.wake();
    });
  }

  private isSettled(): boolean {
    const { registration } = this;
    if (this.closing.signal.aborted) return registration === undefined && this.unresolved === undefined;
    return (
      registration !== undefined &&
      registration.content === this.present &&
      registration.session === this.context.zooKeeper.session?.id
    );
  }

  private wake(): void {
    if (this.working) return;
    this.working = true;
    void this.work();
  }

  /** Never rejects: logs errors and retries the failed step, unless the client is closed. */
  private async work(): Promise<void> {
    try {
      while (!this.isSettled()) await this.step();
      this.working = false;
      if (this.closing.signal.aborted) this.finish();
      for (const { resolve } of this.waiters) resolve();
    } catch (error) {
      this.working = false;
      this.failed(error);
    }
  }

  private failed(error: unknown): void {
    const { zooKeeper, clock, log } = this.context;
    if (zooKeeper.state === 'closed') {
      this.finish();
      for (const { reject } of this.waiters) reject(error);
      return;
    }
    log.warn('A component could not be registered; retrying', { component: this.describe(), error });
    clock.schedule(RETRY_MS, () => this.wake(), { background: true });
  }

  private finish(): void {
    this.context.zooKeeper.off('session', this.onSession);
    this.onClosed();
  }

  /** Takes one step towards the present component being in the registry. */
  private async step(): Promise<void> {
    const { zooKeeper } = this.context;
    const isClosing = this.closing.signal.aborted;
    this.forgetOtherSessions();
    if (isClosing && this.registration === undefined && this.unresolved === undefined) return;
    const session = zooKeeper.session ?? (await zooKeeper.connected());
    this.forgetOtherSessions();
    const { registration } = this;
    try {
      if (registration !== undefined)
        await (isClosing ? this.remove(registration, session) : this.write(registration, session));
      else if (this.unresolved !== undefined) await this.find(session);
      else if (!isClosing) await this.create(session);
    } catch (error) {
      if (session.lost.aborted) return;
      if (isZooKeeperError(error, 'no-node')) this.forget(session);
      else if (!isZooKeeperError(error, 'outcome-unknown')) throw error;
      else if (this.registration === undefined) this.unresolved = session;
    }
  }

  /** Forgets a deleted znode. If a search found it, the own one may still exist. */
  private forget(session: Session | undefined): void {
    if (this.registration?.isGuess === true) this.unresolved = session;
    this.registration = undefined;
  }

  /** Forgets the znodes of earlier sessions, which ended with those sessions. */
  private forgetOtherSessions(): void {
    const id = this.context.zooKeeper.session?.id;
    if (this.registration?.session !== id) this.registration = undefined;
    if (this.unresolved?.id !== id) this.unresolved = undefined;
  }

  /**
   * Creates the znode. Here and below, a call ends with the session that it was made for: in a later session, after a
   * backup was restored, it could change the znode of another component that now has the same name.
   */
  private async create(session: Session): Promise<void> {
    const content = this.present;
    const data = bytesOf(encodeComponent(content));
    const { path, stat } = await this.context.zooKeeper.create(
      `${componentsPath(content.kind)}/${content.hostname}`,
      data,
      { mode: 'ephemeral-sequential', signal: session.lost },
    );
    const { caches } = this.context;
    caches.created(path, { data, stat });
    // Another client may have deleted it: the event can arrive together with the answer.
    if (caches.has(path)) this.registration = { path, session: stat.ephemeralOwner, content };
    else this.unresolved = session;
  }

  private async write(registered: Registered, { lost }: Session): Promise<void> {
    const { path, session } = registered;
    const content = this.present;
    const data = bytesOf(encodeComponent(content));
    const expectation = this.context.caches.expect([path]);
    try {
      const stat = await this.context.zooKeeper.set(path, data, { signal: lost });
      // As above, it may have vanished.
      if (this.registration === registered) this.registration = { path, session, content };
      expectation.applied([{ path, node: { data, stat } }]);
    } catch (error) {
      expectation.unknown();
      throw error;
    }
  }

  private async remove({ path }: Registered, { lost }: Session): Promise<void> {
    const expectation = this.context.caches.expect([path]);
    try {
      await this.context.zooKeeper.delete(path, { signal: lost });
      this.registration = undefined;
      expectation.applied([{ path, node: undefined }]);
    } catch (error) {
      expectation.unknown();
      throw error;
    }
  }

  /** Finds the znode of a creation whose answer was lost: the znode of this session that no other registration owns. */
  private async find(session: Session): Promise<void> {
    const { zooKeeper } = this.context;
    const options: CallOptions = { signal: session.lost };
    const directory = componentsPath(this.present.kind);
    await zooKeeper.sync(directory, options);
    for (const name of await childrenOf(zooKeeper, directory, options)) {
      const path = `${directory}/${name}`;
      if (!name.startsWith(this.present.hostname) || this.isTaken(path)) continue;
      const stat = await zooKeeper.exists(path, options);
      // Another registration of this process may have claimed it during the search.
      if (stat?.ephemeralOwner !== session.id || this.isTaken(path)) continue;
      // A copy of the content makes the next step write it, because the znode may hold an older one.
      this.registration = { path, session: session.id, content: { ...this.present }, isGuess: true };
      break;
    }
    this.unresolved = undefined;
  }

  private describe(): string {
    return `the ${this.present.kind} component of ${this.present.hostname}`;
  }
}
