import type { Source } from '../codec/codec.js';
import type { NodeRequest } from '@nodepool/core';

/** A request record as cached. */
export class RequestEntry {
  readonly id: string;
  readonly request: NodeRequest;

  constructor(
    readonly source: Source<NodeRequest>,
    readonly version: number,
    readonly locked: boolean,
  ) {
    this.request = source.value;
    this.id = source.value.id;
  }
}
