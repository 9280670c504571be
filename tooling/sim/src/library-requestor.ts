/** A requestor on `@nodepool/requestor`: it acquires nodes, uses them and returns them, or dies with them. */

import { sleep, type JsonObject } from '@nodepool/core';
import {
  LeaseLostError,
  openRequestor,
  RequestFailedError,
  RequestTimeoutError,
  type ReturnOptions,
} from '@nodepool/requestor';
import { announcing } from './announcing.js';
import { between, oneOf } from './chance.js';
import type { RequestorEnvironment } from './requestor.js';
import { textOf } from './rules/values.js';
import { LABELS, TENANTS } from './site.js';

const MAX_LABELS = 3;
/** Chance that it dies while it uses its nodes, and chance that it holds them instead of returning them. */
const DIES = 0.1;
const HOLDS = 0.1;
const HOLD_SECONDS = 20;
/** Milliseconds. */
const WAIT_LIMIT_MS = 120_000;

export class LibraryRequestor {
  /** The request while it waits. */
  request: string | undefined;
  done = false;
  private readonly restoration = new AbortController();

  constructor(private readonly environment: RequestorEnvironment) {}

  /** The session has ended, and ids may be reused, so the program starts anew. */
  restored(): void {
    this.restoration.abort(new Error('an earlier state of ZooKeeper was restored'));
    this.request = undefined;
  }

  /** Never rejects; the checker observes the outcome. */
  async live(): Promise<void> {
    const { clock, random, checker, name } = this.environment;
    const zooKeeper = announcing(this.environment);
    const requestor = openRequestor(zooKeeper, { name, clock, random });
    try {
      const lease = await requestor.acquire(this.spec(), {
        signal: this.restoration.signal,
        timeoutMs: WAIT_LIMIT_MS,
        onProgress: ({ id, state }) => (this.request = state === 'fulfilled' ? undefined : id),
      });
      this.request = undefined;
      await sleep(clock, between(random, 500, 30_000), AbortSignal.any([lease.lost, this.restoration.signal]));
      const end = random.next();
      if (end < DIES) checker.step(`${name} dies with ${lease.nodes.map(({ id }) => id).join(', ')}`);
      else if (end < DIES + HOLDS) await lease.hold({ comment: 'held', expirationSeconds: HOLD_SECONDS });
      else await lease.return(this.resultOn(lease.nodes.map(({ id }) => id)));
    } catch (error) {
      const foreseen = [RequestFailedError, RequestTimeoutError, LeaseLostError].some((type) => error instanceof type);
      checker.step(`${name} gives up: ${String(error)}`);
      if (!foreseen && !this.restoration.signal.aborted) checker.report('X', `${name} failed: ${String(error)}`);
    } finally {
      this.request = undefined;
      await requestor.close();
      await zooKeeper.close();
      this.done = true;
    }
  }

  private resultOn([node = '']: readonly string[]): ReturnOptions {
    const { checker } = this.environment;
    const result = this.environment.jobResult(textOf(checker.observed.nodes.get(node)?.data['image_id']));
    return result === undefined ? {} : { result };
  }

  private spec(): { readonly labels: readonly string[]; readonly tenant: string | null; readonly data: JsonObject } {
    const { random, name } = this.environment;
    const labels = Array.from({ length: between(random, 1, MAX_LABELS + 1) }, () => oneOf(random, LABELS) ?? 'small');
    return { labels, tenant: oneOf(random, TENANTS) ?? null, data: { name } };
  }
}
