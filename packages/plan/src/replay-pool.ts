/** Replays in several worker threads, since a replay uses one core. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { LoadOptions, NodepoolConfig } from '@nodepool/config';
import type { Day } from './day/day.js';
import type { AssumedTimes } from './model/draws.js';
import type { PoolLimits } from './model/model-config.js';
import { replay, type ReplayOptions } from './replay.js';
import type { RunMeasures } from './result/measures.js';

/** Absent where the sources run uncompiled; replays then run in this thread. */
const WORKER_FILE = join(__dirname, 'replay-worker.js');

/** A configuration as read from its file, and the options with which a worker reads it again. */
export interface ConfigSource {
  readonly config: NodepoolConfig;
  /** Without functions, which cannot be sent to a thread. */
  readonly source: Omit<LoadOptions, 'discoverDriver'>;
}

export interface ReplayPoolOptions {
  readonly day: Day;
  readonly assumed?: Partial<AssumedTimes> | undefined;
  readonly sources: readonly ConfigSource[];
  /** Number of threads. With one, replays run in this thread. */
  readonly threads: number;
}

export interface WorkerData {
  readonly day: Day;
  readonly assumed: Partial<AssumedTimes> | undefined;
}

export interface WorkerTask {
  readonly source: LoadOptions;
  readonly seed: number;
  readonly limits: PoolLimits | undefined;
}

export type WorkerAnswer = { readonly measures: RunMeasures } | { readonly failure: string };

export class ReplayPool {
  /** Number of replays at the same time. */
  readonly size: number;
  private readonly idle: Worker[] = [];
  private readonly all: Worker[] = [];

  constructor(private readonly options: ReplayPoolOptions) {
    this.size = options.threads > 1 && existsSync(WORKER_FILE) ? options.threads : 1;
  }

  /** Does the same as `replay`, with one of the configurations of the pool. Call it at most `size` times at once. */
  readonly replay = async (options: ReplayOptions): Promise<RunMeasures> => {
    const source = this.options.sources.find(({ config }) => config === options.config)?.source;
    if (this.size === 1 || source === undefined) return replay(options);
    const { seed, limits, signal } = options;
    const worker = this.idle.pop() ?? this.start();
    const answer = await answerOf(worker, { source, seed, limits }, signal);
    this.idle.push(worker);
    if ('failure' in answer) throw new Error(answer.failure);
    return answer.measures;
  };

  /** Ends the threads. */
  async close(): Promise<void> {
    await Promise.all(this.all.map((worker) => worker.terminate()));
  }

  private start(): Worker {
    const { day, assumed } = this.options;
    const workerData: WorkerData = { day, assumed };
    const worker = new Worker(WORKER_FILE, { workerData });
    this.all.push(worker);
    return worker;
  }
}

function answerOf(worker: Worker, task: WorkerTask, signal: AbortSignal | undefined): Promise<WorkerAnswer> {
  return new Promise((resolve, reject) => {
    const interrupt = (): void => settle(() => reject(signal?.reason as Error));
    const onMessage = (answer: WorkerAnswer): void => settle(() => resolve(answer));
    const onError = (error: Error): void => settle(() => reject(error));
    const settle = (end: () => void): void => {
      worker.off('message', onMessage).off('error', onError);
      signal?.removeEventListener('abort', interrupt);
      end();
    };
    if (signal?.aborted === true) {
      reject(signal.reason as Error);
      return;
    }
    worker.on('message', onMessage).on('error', onError);
    signal?.addEventListener('abort', interrupt);
    worker.postMessage(task);
  });
}
