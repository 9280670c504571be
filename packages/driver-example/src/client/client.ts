/**
 * The narrow API through which this driver uses its cloud, with only the calls that it needs.
 *
 * Every driver has such a file, which hides the cloud's SDK (here an object, or HTTP) and can be replaced in tests. All
 * calls go through an `ApiClient` of core.
 */

import type { ApiClientOptions, ApiOperation, Call, ErrorOf } from '@nodepool/core';
import { ApiClient, NO_CREDENTIALS } from '@nodepool/core';
import type { Readable } from 'node:stream';
import type { CloudDescription, CloudImage, CloudInstance, ImageSpec, InstanceSpec, Page } from '../cloud/types.js';

/**
 * The cloud. All calls reject with a `DriverError` that has an outcome: `AbortedError` if the call's signal aborts,
 * `TimeoutError` at its deadline.
 */
export interface ExampleCloudApi {
  describe(call: Call): Promise<CloudDescription>;
  /** Resolves once the cloud has accepted the creation; the instance may still be `building`. */
  createInstance(spec: InstanceSpec, call: Call): Promise<CloudInstance>;
  /** Resolves with the instance, which is `deleting` or `deleted`. */
  deleteInstance(id: string, call: Call): Promise<CloudInstance>;
  /** Resolves with one page; `marker` is the `next` of the previous page, or null for the first page. */
  listInstances(marker: string | null, call: Call): Promise<Page<CloudInstance>>;
  consoleOf(id: string, call: Call): Promise<string>;
  createImage(spec: ImageSpec, call: Call): Promise<CloudImage>;
  /** Streams an image's data, and opens them again to repeat it. Resolves once the cloud has verified them. */
  putImageData(id: string, data: () => Readable, call: Call): Promise<CloudImage>;
  deleteImage(id: string, call: Call): Promise<void>;
  listImages(marker: string | null, call: Call): Promise<Page<CloudImage>>;
}

export type CallContext = Pick<ApiClientOptions<undefined>, 'clock' | 'onApiCall' | 'callsPerSecond'>;

/** A kind of call, for messages and metrics. */
export interface Operation extends ApiOperation {
  readonly service: 'instances' | 'images' | 'cloud';
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly operation: string;
}

export const OPERATIONS = {
  describe: { service: 'cloud', method: 'GET', operation: 'describe' },
  createInstance: { service: 'instances', method: 'POST', operation: 'create' },
  deleteInstance: { service: 'instances', method: 'DELETE', operation: 'delete' },
  listInstances: { service: 'instances', method: 'GET', operation: 'list' },
  consoleOf: { service: 'instances', method: 'GET', operation: 'console' },
  createImage: { service: 'images', method: 'POST', operation: 'create' },
  putImageData: { service: 'images', method: 'PUT', operation: 'upload' },
  deleteImage: { service: 'images', method: 'DELETE', operation: 'delete' },
  listImages: { service: 'images', method: 'GET', operation: 'list' },
} as const satisfies Record<keyof ExampleCloudApi, Operation>;

/** Creates the client of core through which all calls go. */
export function apiClient(context: CallContext, errorOf: ErrorOf): ApiClient {
  return new ApiClient({ ...context, errorOf, credentials: NO_CREDENTIALS });
}

export function requestOf(kind: Operation): Operation & { readonly name: string } {
  return { ...kind, name: nameOf(kind) };
}

/** Returns the name of a call, e.g. `example cloud, instances: create`. */
function nameOf({ service, operation }: Operation): string {
  return `example cloud, ${service}: ${operation}`;
}
