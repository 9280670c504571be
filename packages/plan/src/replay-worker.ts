/** A worker thread that replays one day with the configurations of files. */

import { parentPort, workerData } from 'node:worker_threads';
import { loadConfig, type LoadOptions, type NodepoolConfig } from '@nodepool/config';
import { reasonOf } from '@nodepool/core';
import type { WorkerAnswer, WorkerData, WorkerTask } from './replay-pool.js';
import { replay } from './replay.js';

const { day, assumed } = workerData as WorkerData;
const configs = new Map<string, Promise<NodepoolConfig>>();

async function configOf(source: LoadOptions): Promise<NodepoolConfig> {
  const result = await loadConfig(source);
  if (result.ok) return result.config;
  throw new Error(`${source.file} has changed, and cannot be used any more`);
}

async function answerTo({ source, seed, limits }: WorkerTask): Promise<WorkerAnswer> {
  try {
    const config = configs.get(source.file) ?? configOf(source);
    configs.set(source.file, config);
    return { measures: await replay({ day, config: await config, seed, limits, assumed }) };
  } catch (error) {
    return { failure: reasonOf(error) };
  }
}

parentPort?.on('message', (task: WorkerTask) => {
  void answerTo(task).then((answer) => parentPort?.postMessage(answer));
});
