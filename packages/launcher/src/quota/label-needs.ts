/**
 * The resources that a node of each label needs, as the cloud reports them. A label waits until they are known. A label
 * whose configuration the cloud rejects twice is out of service until a later question succeeds.
 */

import {
  backOffMs,
  ERROR_POLICIES,
  QuotaInformation,
  sleep,
  toDriverError,
  type Call,
  type DriverError,
  type LabelConfig,
  type PoolConfig,
  type Provider,
  type Readiness,
} from '@nodepool/core';
import { MAX_OUTAGE_WAIT_MS } from '../cloud-outage.js';
import type { LauncherContext } from '../context.js';
import { driverCall } from '../driver-call.js';
import type { TurnGate } from './turn-gate.js';

const CALL_TIMEOUT_MS = 60_000;

/** A label whose need is unknown. */
interface Unknown {
  readonly since: number;
  /** Failures in a row. */
  failures: number;
  /** Rejections of the configuration in a row. */
  rejections: number;
  reason: string;
  /** Requests for the label are declined instead of waiting. */
  outOfService: boolean;
}

export class LabelNeeds {
  private readonly needs = new Map<string, QuotaInformation>();
  private readonly unknown = new Map<string, Unknown>();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    private readonly pool: PoolConfig,
    private readonly signal: AbortSignal,
    /** Called when a label can be served from now on, or is declined. */
    private readonly onChange: () => void,
  ) {}

  /** Asks the cloud about every label; a failed question is repeated in the background. */
  async load(gate: TurnGate): Promise<void> {
    if (this.provider.getQuotaForLabel === undefined) return;
    const ask = async (label: LabelConfig): Promise<void> => {
      await gate.pass();
      await this.ask(label);
    };
    await Promise.all([...this.pool.labels.values()].map(ask));
  }

  need(label: string): QuotaInformation {
    return this.needs.get(label) ?? QuotaInformation.use({ instances: 1 });
  }

  /** Returns the reason why a request for the label waits; undefined if it does not. */
  waitsFor(label: string): string | undefined {
    const unknown = this.unknown.get(label);
    if (unknown === undefined || unknown.outOfService) return undefined;
    return `the cloud has not told yet what nodes of label ${label} need: ${unknown.reason}`;
  }

  readiness(label: string): Readiness {
    const unknown = this.unknown.get(label);
    if (unknown?.outOfService === true) return { ready: false, reason: unknown.reason };
    try {
      return this.provider.labelReady(this.pool.name, label);
    } catch (error) {
      return { ready: false, reason: `the driver failed: ${toDriverError(error).message}` };
    }
  }

  /** Asks once. */
  private async ask(label: LabelConfig): Promise<void> {
    const { clock, log } = this.context;
    const getQuotaForLabel = this.provider.getQuotaForLabel?.bind(this.provider);
    if (getQuotaForLabel === undefined) return;
    const call: Call = { signal: this.signal, deadline: clock.monotonic() + CALL_TIMEOUT_MS, log };
    try {
      const need = await driverCall(clock, `asking what label ${label.name} needs`, call, (each) =>
        getQuotaForLabel(this.pool.name, label.name, each),
      );
      // Copied: the answer may be of another copy of the library, or not valid, which is detected here.
      this.needs.set(label.name, QuotaInformation.use({ instances: 1, ...need.toResources() }));
      if (this.unknown.delete(label.name)) this.onChange();
    } catch (error) {
      if (!this.signal.aborted) this.failed(label, toDriverError(error));
    }
  }

  private failed(label: LabelConfig, error: DriverError): void {
    const { clock, random, log, tasks } = this.context;
    const now = clock.monotonic();
    const first: Unknown = { since: now, failures: 0, rejections: 0, reason: '', outOfService: false };
    const unknown = this.unknown.get(label.name) ?? first;
    this.unknown.set(label.name, unknown);
    const before = unknown.outOfService;
    unknown.failures += 1;
    unknown.rejections = ERROR_POLICIES[error.code].disablesLabel ? unknown.rejections + 1 : 0;
    unknown.reason = error.message;
    const delay = backOffMs(unknown.failures, error, random);
    // A rejection counts once it is confirmed, any other failure once requests have waited for long.
    unknown.outOfService = unknown.rejections > 1 || now - unknown.since >= MAX_OUTAGE_WAIT_MS;
    const message = unknown.outOfService
      ? 'A label is out of service: the cloud does not tell what its nodes need'
      : 'A label waits: the cloud does not tell what its nodes need';
    log.warn(message, {
      provider: this.provider.config.name,
      pool: this.pool.name,
      label: label.name,
      error,
      retry_in_ms: Math.round(delay),
    });
    tasks.run(`ask again what label ${label.name} needs`, () => this.later(label, delay));
    if (unknown.outOfService !== before) this.onChange();
  }

  private async later(label: LabelConfig, delayMs: number): Promise<void> {
    try {
      await sleep(this.context.clock, delayMs, this.signal);
    } catch {
      // Only the signal ends the sleep early: the pool was stopped.
      return;
    }
    await this.ask(label);
  }
}
