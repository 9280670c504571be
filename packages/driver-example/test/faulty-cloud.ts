/** An example cloud that injects planned faults into its next calls. */

import type { FaultKind, PlannedFault } from '@nodepool/driver-kit';
import { ExampleCloud } from '../src/cloud/cloud.js';
import type { Answer } from '../src/cloud/api-gateway.js';
import {
  CloudError,
  type CloudDescription,
  type CloudImage,
  type CloudInstance,
  type ImageSpec,
  type InstanceSpec,
  type Page,
} from '../src/cloud/types.js';

type Operation = PlannedFault['operation'];

export class FaultyCloud extends ExampleCloud {
  private planned: PlannedFault[] = [];

  plan(fault: PlannedFault): void {
    this.planned.push(fault);
  }

  clearFaults(): void {
    this.planned = [];
  }

  override describe(): Answer<CloudDescription> {
    return this.call('any', () => super.describe());
  }

  override createInstance(spec: InstanceSpec): Answer<CloudInstance> {
    return this.call('create', () => super.createInstance(spec));
  }

  override deleteInstance(id: string): Answer<CloudInstance> {
    return this.call('delete', () => super.deleteInstance(id));
  }

  override listInstances(marker: string | null, limit?: number): Answer<Page<CloudInstance>> {
    return this.call('list', () => super.listInstances(marker, limit));
  }

  override consoleOf(id: string): Answer<string> {
    return this.call('any', () => super.consoleOf(id));
  }

  override createImage(spec: ImageSpec): Answer<CloudImage> {
    return this.call('any', () => super.createImage(spec));
  }

  override async putImageData(id: string, data: AsyncIterable<Uint8Array>): Promise<CloudImage> {
    return this.call('upload', () => super.putImageData(id, data));
  }

  override deleteImage(id: string): Answer<null> {
    return this.call('any', () => super.deleteImage(id));
  }

  override listImages(marker: string | null, limit?: number): Answer<Page<CloudImage>> {
    return this.call('any', () => super.listImages(marker, limit));
  }

  private call<T>(operation: Operation, serve: () => Answer<T>): Answer<T> {
    const kind = this.nextFault(operation);
    if (kind === undefined) return serve();
    if (kind === 'hang') return new Promise<never>(() => undefined);
    if (kind !== 'lose-answer' && kind !== 'fail-after') throw refusal(kind);
    const lost =
      kind === 'fail-after'
        ? new CloudError('internal', 'internal error of the cloud after the effect')
        : new CloudError('answer-lost', 'the answer was lost');
    const answer = serve();
    if (!(answer instanceof Promise)) throw lost;
    return answer.then(() => Promise.reject(lost));
  }

  /** Counts the call and returns the fault to inject into it, if any. */
  private nextFault(operation: Operation): FaultKind | undefined {
    const due = this.planned.find((fault) => fault.skip === 0 && concerns(fault, operation));
    this.planned = this.planned.flatMap((fault) => {
      if (fault === due) return [];
      return concerns(fault, operation) ? [{ ...fault, skip: Math.max(fault.skip - 1, 0) }] : [fault];
    });
    return due?.kind;
  }
}

function concerns(fault: PlannedFault, operation: Operation): boolean {
  return fault.operation === 'any' || fault.operation === operation;
}

function refusal(kind: Exclude<FaultKind, 'hang' | 'lose-answer' | 'fail-after'>): CloudError {
  switch (kind) {
    case 'refuse':
      return new CloudError('internal', 'internal error of the cloud');
    case 'throttle':
      return new CloudError('throttled', 'one call too many', 2);
    case 'auth':
      return new CloudError('unauthorized', 'the credentials are refused');
    case 'quota':
      return new CloudError('quota', 'quota exceeded');
    case 'capacity':
      return new CloudError('no-capacity', 'the zone has no capacity at the moment');
    case 'invalid':
      return new CloudError('invalid', 'there is no such thing');
    case 'not-found':
      return new CloudError('not-found', 'there is no such object');
    case 'conflict':
      throw new Error('calls to this cloud never conflict');
    case 'echo':
    case 'proxy-404':
    case 'proxy-200':
    case 'proxy-json':
      throw new Error('no proxy is in front of this cloud');
  }
}
