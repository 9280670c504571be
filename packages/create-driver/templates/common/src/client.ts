/**
 * The narrow API through which this driver uses its cloud, with only the calls that it needs.
 *
 * It hides the cloud's SDK from the rest of the driver. Every call is a task of the task manager, which applies the
 * configured rate, the abort signal and the deadline, and counts the call.
 */

import type { Call, TaskManager } from '@nodepool/core';
import { driverErrorOf } from './errors.js';
import type { InstanceSpec, Limits, Page, TinyCloud, TinyInstance } from './tiny-cloud.js';

/** A kind of call, for messages and metrics. */
interface Operation {
  readonly service: string;
  readonly method: string;
  readonly operation: string;
}

const CREATE: Operation = { service: 'instances', method: 'POST', operation: 'create' };
const DELETE: Operation = { service: 'instances', method: 'DELETE', operation: 'delete' };
const LIST: Operation = { service: 'instances', method: 'GET', operation: 'list' };
const LIMITS: Operation = { service: 'project', method: 'GET', operation: 'limits' };

/** The cloud's client. All calls reject with a `DriverError`. */
export class Client {
  /** Replace `cloud` with your cloud's SDK, or with calls of `fetch` that use the signal of each task. */
  constructor(private readonly cloud: TinyCloud) {}

  /** Resolves once the cloud has accepted the creation; the instance may still be booting. */
  createInstance(tasks: TaskManager, spec: InstanceSpec, call: Call): Promise<TinyInstance> {
    return submit(tasks, CREATE, call, (signal) => this.cloud.createInstance(spec, signal));
  }

  /** Resolves once the cloud has accepted the deletion; the instance may continue to exist for a while. */
  deleteInstance(tasks: TaskManager, id: string, call: Call): Promise<void> {
    return submit(tasks, DELETE, call, (signal) => this.cloud.deleteInstance(id, signal));
  }

  /**
   * Resolves with the instances of all pages. Rejects if one page fails, since an instance that a list lacks counts as
   * deleted.
   */
  async listInstances(tasks: TaskManager, call: Call): Promise<readonly TinyInstance[]> {
    const items: TinyInstance[] = [];
    let page: Page<TinyInstance> | undefined;
    do {
      const marker: string | null = page?.next ?? null;
      page = await submit(tasks, LIST, call, (signal) => this.cloud.listInstances(marker, signal));
      items.push(...page.items);
    } while (page.next !== null);
    return items;
  }

  /** Resolves with the total limits of the project. */
  limits(tasks: TaskManager, call: Call): Promise<Limits> {
    return submit(tasks, LIMITS, call, (signal) => this.cloud.limits(signal));
  }
}

function submit<T>(
  tasks: TaskManager,
  operation: Operation,
  call: Call,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const main = async (signal: AbortSignal): Promise<T> => {
    try {
      return await work(signal);
    } catch (error) {
      throw driverErrorOf(operation.operation, error);
    }
  };
  return tasks.submit({ ...operation, main }, call);
}
