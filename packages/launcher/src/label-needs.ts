/** What one node of each label of a pool needs, and which labels cannot be served at all and why. */

import {
  QuotaInformation,
  isDriverError,
  sleep,
  toDriverError,
  type Call,
  type LabelConfig,
  type PoolConfig,
  type Provider,
  type Readiness,
} from '@nodepool/core';
import type { LauncherContext } from './context.js';
import { driverCall } from './driver-call.js';

const CALL_TIMEOUT_MS = 60_000;
const RETRY_MS = 60_000;

export class LabelNeeds {
  private readonly needs = new Map<string, QuotaInformation>();
  private readonly failures = new Map<string, string>();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    private readonly pool: PoolConfig,
    private readonly signal: AbortSignal,
    /** Called when a label that could not be served can be from now on. */
    private readonly onReady: () => void,
  ) {}

  /** Asks the cloud about every label; what it cannot tell now is asked for again later. */
  async load(): Promise<void> {
    await Promise.all([...this.pool.labels.values()].map((label) => this.loadLabel(label)));
  }

  need(label: string): QuotaInformation {
    return this.needs.get(label) ?? QuotaInformation.use({ instances: 1 });
  }

  readiness(label: string): Readiness {
    const reason = this.failures.get(label);
    if (reason !== undefined) return { ready: false, reason };
    try {
      return this.provider.labelReady(this.pool.name, label);
    } catch (error) {
      return { ready: false, reason: `the driver failed: ${toDriverError(error).message}` };
    }
  }

  /** The cloud refuses the label; until the configuration changes. */
  failed(label: string, reason: string): void {
    this.failures.set(label, reason);
  }

  private async loadLabel(label: LabelConfig): Promise<void> {
    const { clock, log } = this.context;
    const getQuotaForLabel = this.provider.getQuotaForLabel?.bind(this.provider);
    if (getQuotaForLabel === undefined) return;
    const call: Call = { signal: this.signal, deadline: clock.monotonic() + CALL_TIMEOUT_MS, log };
    try {
      const need = await driverCall(clock, `asking what label ${label.name} needs`, call, (each) =>
        getQuotaForLabel(this.pool.name, label.name, each),
      );
      // Made anew: what a driver answers may be of another copy of the library, or nonsense, which is found out here.
      this.needs.set(label.name, QuotaInformation.use({ instances: 1, ...need.toResources() }));
      if (this.failures.delete(label.name)) this.onReady();
    } catch (error) {
      if (this.signal.aborted) return;
      const failure = toDriverError(error);
      this.failures.set(label.name, failure.message);
      log.warn('A label cannot be served: the cloud does not tell what its nodes need', {
        provider: this.provider.config.name,
        pool: this.pool.name,
        label: label.name,
        error: failure,
      });
      if (isDriverError(error) && error.code === 'configuration') return;
      this.context.tasks.run(`ask again what label ${label.name} needs`, () => this.later(label));
    }
  }

  private async later(label: LabelConfig): Promise<void> {
    try {
      await sleep(this.context.clock, RETRY_MS, this.signal);
    } catch {
      // Only the signal ends the sleep early: the pool was stopped, nobody asks any more.
      return;
    }
    await this.loadLabel(label);
  }
}
