/** Operations in progress in the cloud. */

import { sleep } from '@nodepool/core';
import { linkTo, newId, type GceState } from './cloud-state.js';
import { timestamp, type Message } from './messages.js';
import type { OperationError } from './faults.js';
import { notFound } from './api-error.js';

/** Maximum duration of a `wait` call (ms). */
const MAX_WAIT_MS = 120_000;

export interface OperationSpec {
  readonly project: string;
  /** Undefined for a global operation. */
  readonly zone: string | undefined;
  readonly type: 'insert' | 'delete';
  /** Path of the affected resource. */
  readonly target: string;
  readonly ms: number;
  readonly error: OperationError | undefined;
  readonly requestId: string | undefined;
}

interface OperationRecord extends OperationSpec {
  error: OperationError | undefined;
  readonly name: string;
  readonly id: string;
  readonly begunAt: number;
}

export class Operations {
  private readonly records = new Map<string, OperationRecord>();
  private readonly byRequest = new Map<string, OperationRecord>();

  constructor(private readonly state: GceState) {}

  /** Returns the operation of an earlier call with the same request id. */
  ofRequest(requestId: string | undefined): Message | undefined {
    const record = requestId === undefined ? undefined : this.byRequest.get(requestId);
    return record === undefined ? undefined : this.view(record);
  }

  begin(spec: OperationSpec): Message {
    const id = newId(this.state.random);
    const record: OperationRecord = { ...spec, id, name: `operation-${id}`, begunAt: this.state.clock.monotonic() };
    this.records.set(record.name, record);
    if (spec.requestId !== undefined) this.byRequest.set(spec.requestId, record);
    return this.view(record);
  }

  /** Lets the operations in progress on a resource fail. Returns false if there are none. */
  fail(target: string, error: OperationError): boolean {
    const now = this.state.clock.monotonic();
    const running = [...this.records.values()].filter((one) => one.target === target && now < one.begunAt + one.ms);
    for (const record of running) record.error = error;
    return running.length > 0;
  }

  list(project: string, zone: string | undefined): readonly Message[] {
    const there = [...this.records.values()].filter((record) => record.project === project && record.zone === zone);
    return there.map((record) => this.view(record));
  }

  get(name: string, zone: string | undefined): Message {
    return this.view(this.find(name, zone));
  }

  /** Resolves with the operation when it has ended, or with its state after two minutes. */
  async wait(name: string, zone: string | undefined, signal: AbortSignal): Promise<Message> {
    const record = this.find(name, zone);
    const leftMs = record.begunAt + record.ms - this.state.clock.monotonic();
    if (leftMs > 0) await sleep(this.state.clock, Math.min(leftMs, MAX_WAIT_MS), signal);
    return this.view(record);
  }

  private find(name: string, zone: string | undefined): OperationRecord {
    const record = this.records.get(name);
    if (record === undefined || record.zone !== zone) throw notFound(`operations/${name}`);
    return record;
  }

  private view(record: OperationRecord): Message {
    const { state } = this;
    const { project, zone, name, id, type, target, error } = record;
    const now = state.clock.monotonic();
    const done = now >= record.begunAt + record.ms;
    const scope = zone === undefined ? 'global' : `zones/${zone}`;
    const begun = timestamp(state.clock.now() - (now - record.begunAt));
    return {
      kind: 'compute#operation',
      id,
      name,
      ...(zone === undefined ? {} : { zone: linkTo(state, `projects/${project}/zones/${zone}`) }),
      operationType: type,
      targetLink: linkTo(state, target),
      selfLink: linkTo(state, `projects/${project}/${scope}/operations/${name}`),
      status: done ? 'DONE' : 'RUNNING',
      progress: done ? 100 : 0,
      insertTime: begun,
      startTime: begun,
      ...(done ? { endTime: timestamp(state.clock.now()) } : {}),
      ...(done && error !== undefined
        ? { error: { errors: [error] }, httpErrorStatusCode: 400, httpErrorMessage: 'BAD REQUEST' }
        : {}),
    };
  }
}
