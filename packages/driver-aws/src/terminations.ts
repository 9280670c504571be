/** Terminates instances: those that are to be terminated at the same time share one call. */

import { isDriverError, NotFoundError, sleep, type Call, type Clock } from '@nodepool/core';
import type { Ec2 } from './client/ec2.js';
import { codeIn } from './errors.js';

/** Time for which the first instance of a call waits for others (ms). */
const JOIN_WINDOW_MS = 50;
/** Maximum number of instances of one call. */
const TERMINATION_MAX = 100;

/** State of an instance after the call, e.g. `shutting-down`; undefined if AWS does not tell. */
type State = string | undefined;

interface Waiter {
  readonly resolve: (state: State) => void;
  readonly reject: (error: unknown) => void;
}

type Batch = Map<string, Waiter[]>;

export class Terminations {
  private open: Batch | undefined;

  constructor(
    private readonly ec2: Ec2,
    private readonly clock: Clock,
    private readonly makeCall: () => Call,
  ) {}

  /** Resolves with the state of the instance. Rejects with `NotFoundError` if AWS does not know it. */
  terminate(id: string): Promise<State> {
    let batch = this.open;
    if (batch === undefined) {
      batch = new Map();
      this.open = batch;
      void this.run(batch);
    }
    const waiters = batch.get(id) ?? [];
    batch.set(id, waiters);
    if (batch.size >= TERMINATION_MAX) this.close(batch);
    return new Promise((resolve, reject) => waiters.push({ resolve, reject }));
  }

  private async run(batch: Batch): Promise<void> {
    const call = this.makeCall();
    try {
      await sleep(this.clock, JOIN_WINDOW_MS, call.signal);
    } catch (error) {
      this.close(batch);
      this.reject(batch, [...batch.keys()], error);
      return;
    }
    await this.send(batch, undefined, call);
  }

  /**
   * Terminates some of the instances, by default all. AWS terminates none if one of them is unknown; the others are
   * then sent again without it. After another refusal, the halves are sent, so that one instance does not affect all.
   */
  private async send(batch: Batch, some: readonly string[] | undefined, call: Call): Promise<void> {
    let ids: readonly string[] = some ?? [];
    try {
      const changes = await this.ec2.terminate(() => {
        this.close(batch);
        if (some === undefined) ids = [...batch.keys()];
        return ids;
      }, call);
      const states = new Map(changes.map(({ InstanceId, CurrentState }) => [InstanceId, CurrentState?.Name]));
      for (const id of ids) for (const { resolve } of batch.get(id) ?? []) resolve(states.get(id));
    } catch (error) {
      this.close(batch);
      if (ids.length === 0) ids = [...batch.keys()];
      await this.recover(batch, ids, error, call);
    }
  }

  private async recover(batch: Batch, ids: readonly string[], error: unknown, call: Call): Promise<void> {
    const unknown = isUnknownId(error) ? ids.filter((id) => (error as Error).message.includes(id)) : [];
    if (unknown.length > 0) {
      this.reject(batch, unknown, new NotFoundError(`EC2 does not know ${unknown.join(', ')}`, { cause: error }));
      const others = ids.filter((id) => !unknown.includes(id));
      if (others.length > 0) await this.send(batch, others, call);
      return;
    }
    if (ids.length < 2 || !isRefusal(error)) {
      this.reject(batch, ids, error);
      return;
    }
    const middle = Math.ceil(ids.length / 2);
    await this.send(batch, ids.slice(0, middle), call);
    await this.send(batch, ids.slice(middle), call);
  }

  private reject(batch: Batch, ids: readonly string[], error: unknown): void {
    for (const id of ids) for (const { reject } of batch.get(id) ?? []) reject(error);
  }

  private close(batch: Batch): void {
    if (this.open === batch) this.open = undefined;
  }
}

function isUnknownId(error: unknown): boolean {
  return /^InvalidInstanceID\./.test(codeIn(error) ?? '');
}

/** Returns true if AWS refused the call because of one of its instances. */
function isRefusal(error: unknown): boolean {
  return (
    isDriverError(error) &&
    error.outcome === 'not-applied' &&
    ['conflict', 'not-found', 'unexpected', 'configuration'].includes(error.code)
  );
}
