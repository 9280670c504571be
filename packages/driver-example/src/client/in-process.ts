/** The client of an example cloud in this process. */

import type { ApiClient, Call } from '@nodepool/core';
import type { Readable } from 'node:stream';
import { apiClient, OPERATIONS, requestOf, type CallContext, type ExampleCloudApi, type Operation } from './client.js';
import { driverErrorOf } from '../errors.js';
import type { ExampleCloud } from '../cloud/cloud.js';
import type { Answer } from '../cloud/api-gateway.js';
import type { CloudDescription, CloudImage, CloudInstance, ImageSpec, InstanceSpec, Page } from '../cloud/types.js';
import { CLOUD_ERROR_STATUS, CloudError } from '../cloud/types.js';

export class InProcessClient implements ExampleCloudApi {
  private readonly api: ApiClient;

  constructor(
    private readonly cloud: ExampleCloud,
    context: CallContext,
  ) {
    this.api = apiClient(context, (error, attempted) => driverErrorOf(attempted, error));
  }

  describe(call: Call): Promise<CloudDescription> {
    return this.ask(OPERATIONS.describe, call, () => this.cloud.describe());
  }

  createInstance(spec: InstanceSpec, call: Call): Promise<CloudInstance> {
    return this.ask(OPERATIONS.createInstance, call, () => this.cloud.createInstance(spec));
  }

  deleteInstance(id: string, call: Call): Promise<CloudInstance> {
    return this.ask(OPERATIONS.deleteInstance, call, () => this.cloud.deleteInstance(id));
  }

  listInstances(marker: string | null, call: Call): Promise<Page<CloudInstance>> {
    return this.ask(OPERATIONS.listInstances, call, () => this.cloud.listInstances(marker));
  }

  consoleOf(id: string, call: Call): Promise<string> {
    return this.ask(OPERATIONS.consoleOf, call, () => this.cloud.consoleOf(id));
  }

  createImage(spec: ImageSpec, call: Call): Promise<CloudImage> {
    return this.ask(OPERATIONS.createImage, call, () => this.cloud.createImage(spec));
  }

  putImageData(id: string, data: () => Readable, call: Call): Promise<CloudImage> {
    return this.ask(OPERATIONS.putImageData, call, () => this.cloud.putImageData(id, data()));
  }

  async deleteImage(id: string, call: Call): Promise<void> {
    await this.ask(OPERATIONS.deleteImage, call, () => this.cloud.deleteImage(id));
  }

  listImages(marker: string | null, call: Call): Promise<Page<CloudImage>> {
    return this.ask(OPERATIONS.listImages, call, () => this.cloud.listImages(marker));
  }

  /** Calls the cloud, and reports the status that it would answer over HTTP. */
  private ask<T>(kind: Operation, call: Call, ask: () => Answer<T>): Promise<T> {
    return this.api.send(requestOf(kind), call, async ({ http }) => {
      try {
        const answer = await ask();
        http.answered({ status: 200, headers: {} });
        return answer;
      } catch (error) {
        const status = error instanceof CloudError ? CLOUD_ERROR_STATUS[error.code] : 0;
        if (status > 0) http.answered({ status, headers: {} });
        throw error;
      }
    });
  }
}
