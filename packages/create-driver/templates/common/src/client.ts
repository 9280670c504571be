/**
 * The narrow API through which this driver uses its cloud, with only the calls that it needs.
 *
 * It hides the cloud's SDK from the rest of the driver. Every call goes through the `ApiClient` of Nodepool, which
 * applies the configured rate, the abort signal and the deadline, counts the call, and removes secrets from errors.
 */

import {
  ApiClient,
  NO_CREDENTIALS,
  type ApiOperation,
  type Call,
  type Lane,
  type ProviderConfig,
  type ProviderContext,
} from '@nodepool/core';
import { driverErrorOf } from './errors.js';
import type { InstanceSpec, Limits, Page, TinyCloud, TinyInstance } from './tiny-cloud.js';

/** Maximum number of calls in progress; set it to what your cloud supports. */
const CALLS_AT_ONCE = 10;

/** The kinds of calls, for messages and metrics. A call with the method GET changes nothing. */
const CREATE: ApiOperation = { service: 'instances', method: 'POST', operation: 'create' };
const DELETE: ApiOperation = { service: 'instances', method: 'DELETE', operation: 'delete' };
const LIST: ApiOperation = { service: 'instances', method: 'GET', operation: 'list' };
const LIMITS: ApiOperation = { service: 'project', method: 'GET', operation: 'limits' };

/** The cloud's client. All calls reject with a `DriverError`. */
export class Client {
  private readonly api: ApiClient;
  private readonly lane: Lane;

  /**
   * Replace `cloud` with your cloud's SDK, or with `fetchAnswer` of `@nodepool/core`. If it needs credentials, return
   * them from `credentials`, and read them again when the cloud refuses them.
   */
  constructor(
    private readonly cloud: TinyCloud,
    { callsPerSecond }: Pick<ProviderConfig, 'callsPerSecond'>,
    { clock, onApiCall }: Pick<ProviderContext, 'clock' | 'onApiCall'>,
  ) {
    const credentials = NO_CREDENTIALS;
    this.api = new ApiClient({ clock, onApiCall, callsPerSecond, credentials, errorOf: driverErrorOf });
    this.lane = this.api.lane({ atOnce: CALLS_AT_ONCE });
  }

  /** Resolves once the cloud has accepted the creation; the instance may still be booting. */
  createInstance(spec: InstanceSpec, call: Call): Promise<TinyInstance> {
    return this.send(CREATE, call, (signal) => this.cloud.createInstance(spec, signal));
  }

  /** Resolves once the cloud has accepted the deletion; the instance may continue to exist for a while. */
  deleteInstance(id: string, call: Call): Promise<void> {
    return this.send(DELETE, call, (signal) => this.cloud.deleteInstance(id, signal));
  }

  /**
   * Resolves with the instances of all pages. Rejects if one page fails, since an instance that a list lacks counts as
   * deleted.
   */
  async listInstances(call: Call): Promise<readonly TinyInstance[]> {
    const items: TinyInstance[] = [];
    let page: Page<TinyInstance> | undefined;
    do {
      const marker: string | null = page?.next ?? null;
      page = await this.send(LIST, call, (signal) => this.cloud.listInstances(marker, signal));
      items.push(...page.items);
    } while (page.next !== null);
    return items;
  }

  /** Resolves with the total limits of the project. */
  limits(call: Call): Promise<Limits> {
    return this.send(LIMITS, call, (signal) => this.cloud.limits(signal));
  }

  /** Aborts all calls. */
  stop(): void {
    this.api.stop();
  }

  private send<T>(operation: ApiOperation, call: Call, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.api.send({ ...operation, lane: this.lane }, call, ({ signal }) => work(signal));
  }
}
