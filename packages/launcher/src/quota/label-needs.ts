/**
 * The resources that a node of each label needs with each of its machine types, as reported by the cloud. A label waits
 * until the need of one machine type is known. If the cloud rejects its configuration twice with every machine type,
 * the label is out of service until a later query succeeds.
 */

import type { Call, DriverError, LabelConfig, PoolConfig, Provider, Readiness } from '@nodepool/core';
import {
  backOffMs,
  ERROR_POLICIES,
  isJsonObject,
  QuotaInformation,
  sleep,
  toDriverError,
  driverCall,
} from '@nodepool/core';
import { machineTypesOf } from '../capacity/pool-offers.js';
import type { LauncherContext } from '../context.js';
import type { TurnLimiter } from './turn-limiter.js';

const CALL_TIMEOUT_MS = 60_000;

/** A machine type of a label whose need is unknown. */
interface Unknown {
  failures: number;
  rejections: number;
  reason: string;
  /** True after two rejections: requests no longer wait for this machine type. */
  outOfService: boolean;
}

export class LabelNeeds {
  /** Both by `keyOf`. */
  private readonly needs = new Map<string, QuotaInformation>();
  private readonly unknown = new Map<string, Unknown>();

  constructor(
    private readonly context: LauncherContext,
    private readonly provider: Provider,
    private readonly pool: PoolConfig,
    private readonly signal: AbortSignal,
    /** Called when a label becomes available or is taken out of service. */
    private readonly onChange: () => void,
  ) {}

  /** Queries the needs of every label; failed queries are repeated in the background. */
  async load(limiter: TurnLimiter): Promise<void> {
    if (this.provider.getQuotaForLabel === undefined) return;
    const asked: Promise<void>[] = [];
    for (const label of this.pool.labels.values()) {
      await limiter.acquire();
      for (const machineType of machineTypesOf(label)) asked.push(this.ask(label, machineType));
    }
    await Promise.all(asked);
  }

  need(label: string, machineType: string | undefined): QuotaInformation {
    return this.needs.get(keyOf(label, machineType)) ?? QuotaInformation.use({ instances: 1 });
  }

  /** Returns true if the label's need with this machine type is known, or if none is known for the label. */
  isKnown(label: string, machineType: string | undefined): boolean {
    return this.unknown.size === 0 || !this.unknown.has(keyOf(label, machineType));
  }

  /** Returns the reason why a request for the label waits, or undefined. */
  waitsFor(label: string): string | undefined {
    const unknown = this.unknownTypes(label);
    const awaited = unknown?.find(({ outOfService }) => !outOfService);
    if (awaited === undefined) return undefined;
    return `the cloud has not yet reported what nodes of label ${label} need: ${awaited.reason}`;
  }

  readiness(label: string): Readiness {
    const unknown = this.unknownTypes(label);
    if (unknown?.every(({ outOfService }) => outOfService) === true) {
      return { ready: false, reason: unknown[0]?.reason ?? '' };
    }
    try {
      const readiness: unknown = this.provider.labelReady(this.pool.name, label);
      return isReadiness(readiness) ? readiness : { ready: false, reason: 'the driver does not say if it is ready' };
    } catch (error) {
      return { ready: false, reason: `the driver failed: ${toDriverError(error).message}` };
    }
  }

  /** Returns the machine types of the label if the need of none of them is known. */
  private unknownTypes(label: string): readonly Unknown[] | undefined {
    if (this.unknown.size === 0) return undefined;
    const types = machineTypesOf(this.pool.labels.get(label));
    const unknown = types.flatMap((machineType) => this.unknown.get(keyOf(label, machineType)) ?? []);
    return unknown.length === types.length ? unknown : undefined;
  }

  private async ask(label: LabelConfig, machineType: string | undefined): Promise<void> {
    const { clock, log } = this.context;
    const getQuotaForLabel = this.provider.getQuotaForLabel?.bind(this.provider);
    if (getQuotaForLabel === undefined) return;
    const call: Call = { signal: this.signal, deadline: clock.monotonic() + CALL_TIMEOUT_MS, log };
    try {
      const need = await driverCall(clock, `asking what label ${label.name} needs`, call, (each) =>
        getQuotaForLabel(this.pool.name, label.name, each, machineType),
      );
      // Copied because the answer may be an object of another copy of this library; this also rejects invalid answers.
      this.needs.set(keyOf(label.name, machineType), QuotaInformation.use({ instances: 1, ...need.toResources() }));
      if (this.unknown.delete(keyOf(label.name, machineType))) this.onChange();
    } catch (error) {
      if (!this.signal.aborted) this.failed(label, machineType, toDriverError(error));
    }
  }

  private failed(label: LabelConfig, machineType: string | undefined, error: DriverError): void {
    const { random, log, tasks } = this.context;
    const key = keyOf(label.name, machineType);
    const first: Unknown = { failures: 0, rejections: 0, reason: '', outOfService: false };
    const unknown = this.unknown.get(key) ?? first;
    this.unknown.set(key, unknown);
    const before = unknown.outOfService;
    unknown.failures += 1;
    unknown.rejections = ERROR_POLICIES[error.code].retry === 'confirm' ? unknown.rejections + 1 : 0;
    unknown.reason = error.message;
    const delay = backOffMs(unknown.failures, error, random);
    unknown.outOfService = unknown.rejections > 1;
    const message = unknown.outOfService
      ? 'A label is out of service: the cloud does not report what its nodes need'
      : 'A label waits: the cloud does not report what its nodes need';
    log.warn(message, {
      provider: this.provider.config.name,
      pool: this.pool.name,
      label: label.name,
      machine_type: machineType,
      error,
      retry_in_ms: Math.round(delay),
    });
    tasks.run(`ask again what label ${label.name} needs`, () => this.later(label, machineType, delay));
    if (unknown.outOfService !== before) this.onChange();
  }

  private async later(label: LabelConfig, machineType: string | undefined, delayMs: number): Promise<void> {
    try {
      await sleep(this.context.clock, delayMs, this.signal);
    } catch {
      // The sleep rejects only if the signal aborts because the pool is stopped.
      return;
    }
    await this.ask(label, machineType);
  }
}

function isReadiness(value: unknown): value is Readiness {
  return isJsonObject(value) && (value.ready === true || (value.ready === false && typeof value.reason === 'string'));
}

function keyOf(label: string, machineType: string | undefined): string {
  return JSON.stringify([label, machineType ?? null]);
}
