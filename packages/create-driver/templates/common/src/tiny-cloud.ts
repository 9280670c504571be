/**
 * A tiny cloud to start from, with instances in memory that boot, fail and are listed in pages.
 *
 * It is a placeholder for your cloud. Once `client.ts` uses your cloud, move this file to the tests or delete it.
 */

import { systemClock, type Clock } from '@nodepool/core';

export interface InstanceSpec {
  readonly name: string;
  readonly image: string;
  readonly cores: number;
  /** MiB. */
  readonly ram: number;
  readonly tags: Readonly<Record<string, string>>;
}

export interface TinyInstance extends InstanceSpec {
  readonly id: string;
  readonly address: string;
  readonly state: 'booting' | 'running' | 'failed' | 'deleting';
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Marker of the next page; null for the last page. */
  readonly next: string | null;
}

export interface Limits {
  readonly instances: number;
  readonly cores: number;
}

export type TinyCloudErrorCode =
  | 'invalid'
  | 'unauthorized'
  | 'quota'
  | 'no-capacity'
  | 'not-found'
  | 'conflict'
  | 'throttled'
  | 'internal'
  | 'connection-lost';

export class TinyCloudError extends Error {
  constructor(
    readonly code: TinyCloudErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'TinyCloudError';
  }
}

/** An answer that is not one of the cloud, e.g. of a proxy in front of it. */
export class ForeignAnswerError extends Error {
  constructor(readonly status: number) {
    super(`an answer with status ${status} that is not in the format of the cloud`);
    this.name = 'ForeignAnswerError';
  }
}

export type TinyOperation = 'create' | 'delete' | 'list' | 'limits';

/**
 * A fault of a call: an error without effect, an effect with a lost response or with an internal error, a 404 of a
 * proxy, or a call that never settles.
 */
export type TinyFault = TinyCloudErrorCode | 'lose-answer' | 'fail-after' | 'proxy-404' | 'hang';

export interface TinyCloudSettings {
  bootMs: number;
  deleteMs: number;
  limits: Limits;
  pageSize: number;
  /** Delay until listings show a creation or a deletion. */
  listLagMs: number;
  /** True if new instances have the lowest free id, so that ids are used again. */
  reusesIds: boolean;
}

interface Stored extends InstanceSpec {
  readonly id: string;
  readonly address: string;
  readonly madeAt: number;
  readonly runsAt: number;
  failed: boolean;
  goneAt: number;
}

interface PlannedFault {
  readonly operation: TinyOperation | 'any';
  readonly fault: TinyFault;
  /** Number of calls of the operation that succeed before the fault. */
  skip: number;
}

const projects = new Map<string, TinyCloud>();

export class TinyCloud {
  /** Settings, which can be changed at any time. */
  readonly settings: TinyCloudSettings;
  private readonly stored = new Map<string, Stored>();
  private faults: PlannedFault[] = [];
  private lastId = 0;

  constructor(
    private readonly clock: Clock,
    settings: Partial<TinyCloudSettings> = {},
  ) {
    this.settings = {
      bootMs: 2000,
      deleteMs: 1000,
      limits: { instances: 20, cores: 100 },
      pageSize: 100,
      listLagMs: 0,
      reusesIds: false,
      ...settings,
    };
  }

  /** Returns the cloud of a project, which exists as long as this process. */
  static ofProject(name: string): TinyCloud {
    const known = projects.get(name) ?? new TinyCloud(systemClock);
    projects.set(name, known);
    return known;
  }

  createInstance(spec: InstanceSpec, signal: AbortSignal): Promise<TinyInstance> {
    return this.perform('create', signal, () => {
      const used = this.existing();
      const { instances, cores } = this.settings.limits;
      const coresUsed = used.reduce((sum, each) => sum + each.cores, spec.cores);
      if (used.length >= instances) throw new TinyCloudError('quota', `no more than ${instances} instances`);
      if (coresUsed > cores) throw new TinyCloudError('quota', `no more than ${cores} cores`);
      return this.make(spec);
    });
  }

  deleteInstance(id: string, signal: AbortSignal): Promise<void> {
    return this.perform('delete', signal, () => {
      const instance = this.stored.get(id);
      const now = this.clock.monotonic();
      if (instance === undefined || instance.goneAt <= now) throw new TinyCloudError('not-found', `no instance ${id}`);
      instance.goneAt = Math.min(instance.goneAt, now + this.settings.deleteMs);
    });
  }

  listInstances(marker: string | null, signal: AbortSignal): Promise<Page<TinyInstance>> {
    return this.perform('list', signal, () => {
      const all = this.existingAt(this.clock.monotonic() - this.settings.listLagMs);
      const start = marker === null ? 0 : all.findIndex(({ id }) => id > marker);
      const items = start < 0 ? [] : all.slice(start, start + this.settings.pageSize);
      const last = items.at(-1);
      return { items, next: last === undefined || last === all.at(-1) ? null : last.id };
    });
  }

  limits(signal: AbortSignal): Promise<Limits> {
    return this.perform('limits', signal, () => this.settings.limits);
  }

  /** Returns the instances that exist now, regardless of listings, for tests. */
  existing(): readonly TinyInstance[] {
    return this.existingAt(this.clock.monotonic());
  }

  /** Creates an instance without checking the quota. */
  make(spec: InstanceSpec): TinyInstance {
    const number = this.nextNumber();
    const now = this.clock.monotonic();
    const stored: Stored = {
      ...spec,
      id: idOfNumber(number),
      address: `192.0.2.${(number % 254) + 1}`,
      madeAt: now,
      runsAt: now + this.settings.bootMs,
      failed: false,
      goneAt: Infinity,
    };
    this.stored.set(stored.id, stored);
    return this.describe(stored);
  }

  /** Marks the instance as failed. */
  break(id: string): void {
    const instance = this.stored.get(id);
    if (instance !== undefined) instance.failed = true;
  }

  /** Deletes the instance as a cloud failure does. */
  destroy(id: string): void {
    const instance = this.stored.get(id);
    if (instance !== undefined) instance.goneAt = this.clock.monotonic();
  }

  /** Adds a fault to a call of the operation, after `skip` calls without a fault. */
  failNext(operation: TinyOperation | 'any', fault: TinyFault, skip = 0): void {
    this.faults.push({ operation, fault, skip });
  }

  /** Removes the faults that have not occurred. */
  clearFaults(): void {
    this.faults = [];
  }

  private nextNumber(): number {
    this.lastId += 1;
    if (!this.settings.reusesIds) return this.lastId;
    const used = new Set(this.existing().map(({ id }) => id));
    let number = 1;
    while (used.has(idOfNumber(number))) number += 1;
    return number;
  }

  private existingAt(time: number): readonly TinyInstance[] {
    const stored = [...this.stored.values()];
    return stored.filter(({ madeAt, goneAt }) => madeAt <= time && goneAt > time).map((each) => this.describe(each));
  }

  private describe({ id, name, image, cores, ram, tags, address, runsAt, failed, goneAt }: Stored): TinyInstance {
    const running = runsAt <= this.clock.monotonic() ? 'running' : 'booting';
    const state = goneAt < Infinity ? 'deleting' : failed ? 'failed' : running;
    return { id, name, image, cores, ram, tags, address, state };
  }

  private async perform<T>(operation: TinyOperation, signal: AbortSignal, effect: () => T): Promise<T> {
    signal.throwIfAborted();
    const fault = this.takeFault(operation);
    if (fault === undefined) return effect();
    if (fault === 'hang') return await neverUnlessAborted(signal);
    if (fault === 'proxy-404') throw new ForeignAnswerError(404);
    if (fault !== 'lose-answer' && fault !== 'fail-after') {
      throw new TinyCloudError(fault, `the cloud answers "${fault}"`);
    }
    effect();
    if (fault === 'fail-after')
      throw new TinyCloudError('internal', 'the cloud failed after the call had taken effect');
    throw new TinyCloudError('connection-lost', 'the connection was cut before the answer came');
  }

  private takeFault(operation: TinyOperation): TinyFault | undefined {
    const planned = this.faults.find((each) => each.operation === operation || each.operation === 'any');
    if (planned === undefined) return undefined;
    planned.skip -= 1;
    if (planned.skip >= 0) return undefined;
    this.faults.splice(this.faults.indexOf(planned), 1);
    return planned.fault;
  }
}

function idOfNumber(number: number): string {
  return `i-${String(number).padStart(8, '0')}`;
}

function neverUnlessAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const onAbort = (): void => {
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    };
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
