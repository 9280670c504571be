/** The calls to Compute Engine that this driver makes. */

import type { Call, Clock, JsonObject, Lane, OperationState } from '@nodepool/core';
import { endOfOperation, objectAt, stringAt, TransientError } from '@nodepool/core';
import type { compute_v1 } from '@googleapis/compute/build/v1.js';
import { operationError } from '../errors.js';
import { answerOf, linkAt, listAt } from './answers.js';
import { callOptions, type CallOptions, type Google } from './google.js';

const PAGE_SIZE = 500;
/** Maximum number of pages before a listing counts as endless. */
const MAX_PAGES = 1000;
/** Interval between reads of an operation's state (ms). */
const POLL_INTERVAL_MS = 2000;
/** Time limit of a call (ms). */
const CALL_TIMEOUT_MS = 120_000;
/** Time limit of `wait`, which the cloud answers within two minutes (ms). A later answer was lost. */
const WAIT_TIMEOUT_MS = 150_000;
/** Calls that wait for an operation take long, and the cloud decides when they end. */
const CALLS_AT_ONCE = 1000;
const OPERATION = 'compute#operation';

type Answer = Promise<{ readonly data: unknown }>;

/** A cloud operation in progress or completed. */
export interface Operation {
  readonly name: string;
  /** Undefined for a global operation. */
  readonly zone: string | undefined;
  readonly done: boolean;
  readonly errors: readonly JsonObject[];
}

/** Image and instance as the API defines them; see `Schema$Image` and `Schema$Instance` of the library. */
export type InstanceBody = compute_v1.Schema$Instance;
export type ImageBody = compute_v1.Schema$Image;

export class Compute {
  private readonly lane: Lane;

  constructor(
    private readonly google: Google,
    private readonly project: string,
    private readonly clock: Clock,
  ) {
    this.lane = google.api.lane({ atOnce: CALLS_AT_ONCE });
  }

  /** Creates an instance. Calls with the same `requestId` take effect once. */
  async insertInstance(zone: string, requestBody: InstanceBody, requestId: string, call: Call): Promise<Operation> {
    const { project, api } = this;
    const data = await this.call(OPERATION, 'instances', 'POST', 'insert', call, (options) =>
      api.instances.insert({ project, zone, requestBody, requestId }, options),
    );
    return operationIn(data);
  }

  async deleteInstance(zone: string, instance: string, call: Call): Promise<Operation> {
    const { project, api } = this;
    const data = await this.call(OPERATION, 'instances', 'DELETE', 'delete', call, (options) =>
      api.instances.delete({ project, zone, instance }, options),
    );
    return operationIn(data);
  }

  async listInstances(zone: string, call: Call): Promise<readonly JsonObject[]> {
    const { project, api } = this;
    const pages = await this.pages('compute#instanceList', 'instances', 'list', call, (pageToken, options) =>
      api.instances.list({ project, zone, maxResults: PAGE_SIZE, ...pageToken }, options),
    );
    return pages.flatMap((page) => listAt(page, 'items'));
  }

  async serialOutput(zone: string, instance: string, call: Call): Promise<string> {
    const { project, api } = this;
    const data = await this.call(
      'compute#serialPortOutput',
      'instances',
      'GET',
      'getSerialPortOutput',
      call,
      (options) => api.instances.getSerialPortOutput({ project, zone, instance, port: 1 }, options),
    );
    return stringAt(data, 'contents') ?? '';
  }

  machineType(zone: string, machineType: string, call: Call): Promise<JsonObject> {
    const { project, api } = this;
    return this.call('compute#machineType', 'machineTypes', 'GET', 'get', call, (options) =>
      api.machineTypes.get({ project, zone, machineType }, options),
    );
  }

  async listMachineTypes(zone: string, call: Call): Promise<readonly JsonObject[]> {
    const { project, api } = this;
    const pages = await this.pages('compute#machineTypeList', 'machineTypes', 'list', call, (pageToken, options) =>
      api.machineTypes.list({ project, zone, maxResults: PAGE_SIZE, ...pageToken }, options),
    );
    return pages.flatMap((page) => listAt(page, 'items'));
  }

  region(region: string, call: Call): Promise<JsonObject> {
    const { project, api } = this;
    return this.call('compute#region', 'regions', 'GET', 'get', call, (options) =>
      api.regions.get({ project, region }, options),
    );
  }

  async insertImage(requestBody: ImageBody, requestId: string, call: Call): Promise<Operation> {
    const { project, api } = this;
    const data = await this.call(OPERATION, 'images', 'POST', 'insert', call, (options) =>
      api.images.insert({ project, requestBody, requestId }, options),
    );
    return operationIn(data);
  }

  async deleteImage(image: string, call: Call): Promise<Operation> {
    const { project, api } = this;
    const data = await this.call(OPERATION, 'images', 'DELETE', 'delete', call, (options) =>
      api.images.delete({ project, image }, options),
    );
    return operationIn(data);
  }

  async listImages(call: Call): Promise<readonly JsonObject[]> {
    const { project, api } = this;
    const pages = await this.pages('compute#imageList', 'images', 'list', call, (pageToken, options) =>
      api.images.list({ project, maxResults: PAGE_SIZE, ...pageToken }, options),
    );
    return pages.flatMap((page) => listAt(page, 'items'));
  }

  /** Waits until the operation has ended; throws its error. If it cannot be followed, its outcome is unknown. */
  async finish(operation: Operation, what: string, call: Call, onAnswer?: () => void): Promise<void> {
    let latest = operation;
    if (!latest.done) {
      const read = async (own: Call): Promise<OperationState<undefined>> => {
        latest = await this.waited(latest, own);
        onAnswer?.();
        // The cloud may answer early while the operation is still in progress.
        return latest.done ? { state: 'succeeded', result: undefined } : { state: 'running' };
      };
      await endOfOperation({ what, clock: this.clock, intervalMs: POLL_INTERVAL_MS, read }, call);
    }
    if (latest.errors.length > 0) throw operationError(what, latest.errors);
  }

  /** Makes one `wait` call, which the cloud answers when the operation has ended, or after two minutes. */
  private async waited({ name: operation, zone }: Operation, call: Call): Promise<Operation> {
    const { project, api } = this;
    const data =
      zone === undefined
        ? await this.call(
            OPERATION,
            'globalOperations',
            'POST',
            'wait',
            call,
            (options) => api.globalOperations.wait({ project, operation }, options),
            WAIT_TIMEOUT_MS,
          )
        : await this.call(
            OPERATION,
            'zoneOperations',
            'POST',
            'wait',
            call,
            (options) => api.zoneOperations.wait({ project, zone, operation }, options),
            WAIT_TIMEOUT_MS,
          );
    return operationIn(data);
  }

  /** Resolves with the items of all pages. Rejects if a page fails. */
  private async pages(
    kind: string,
    service: string,
    operation: string,
    call: Call,
    page: (token: PageToken, options: CallOptions) => Answer,
  ): Promise<readonly JsonObject[]> {
    const pages: JsonObject[] = [];
    let token: PageToken = {};
    do {
      const current = token;
      const data = await this.call(kind, service, 'GET', operation, call, (options) => page(current, options));
      pages.push(data);
      const next = stringAt(data, 'nextPageToken');
      if (next === undefined || next === '') return pages;
      token = { pageToken: next };
    } while (pages.length < MAX_PAGES);
    throw new TransientError(`${service}.${operation}: the list does not end`, { outcome: 'not-applied' });
  }

  /** Makes a call and resolves with its answer, which must be of the given kind. */
  private call(
    kind: string,
    service: string,
    method: string,
    operation: string,
    call: Call,
    work: (options: CallOptions) => Answer,
    timeoutMs = CALL_TIMEOUT_MS,
  ): Promise<JsonObject> {
    const name = `${service}.${operation}`;
    const { lane } = this;
    return this.google.api.send({ service, method, operation, name, timeoutMs, lane }, call, async (attempt) => {
      const { data } = await work(callOptions(attempt));
      return answerOf(kind, data, name, method === 'GET' ? 'not-applied' : 'unknown');
    });
  }

  private get api(): compute_v1.Compute {
    return this.google.compute;
  }
}

type PageToken = { readonly pageToken: string } | Record<string, never>;

function operationIn(data: JsonObject): Operation {
  return {
    name: stringAt(data, 'name') ?? '',
    zone: linkAt(data, 'zone'),
    done: stringAt(data, 'status') === 'DONE',
    errors: listAt(objectAt(data, 'error') ?? {}, 'errors'),
  };
}
