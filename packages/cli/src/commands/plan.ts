/** `nodepool plan`: replays a day of requests, and compares configurations or searches for a limit. */

import { access } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { formatProblem } from '@nodepool/config';
import {
  DayError,
  fileSource,
  fit,
  FitError,
  fitText,
  plan as planOf,
  planText,
  readDay,
  ReplayPool,
  trialText,
  type ConfigSource,
  type Day,
  type DaySource,
  type FitTarget,
  type PlannedConfiguration,
} from '@nodepool/plan';
import { CommandError } from '../command-context.js';
import { readJournals } from '../journals.js';
import { readConfig } from '../open.js';
import type { FormatOption, OnStore } from '../options.js';
import type { CommonOptions, ProcessIo } from '../process-io.js';

export type FitOption = Omit<FitTarget, 'pool'>;

export interface PlanCliOptions extends FormatOption {
  readonly inForce?: string;
  readonly requests?: readonly string[];
  /** Seconds. */
  readonly since?: number;
  readonly fit?: FitOption;
  readonly pool?: string;
  readonly runs: number;
  /** Number of replays at the same time. Default: the number of cores. */
  readonly jobs?: number;
  /** Seconds. */
  readonly bootTime: number;
  readonly launcher?: readonly string[];
}

const INSTALLED_FILE = '/etc/nodepool/nodepool.yaml';
/** The last part of the journals that is replayed unless `--since` names another (ms). */
const DAY_MS = 24 * 3_600_000;

/** Rejects with `CommandError` if a configuration, the day or the target cannot be used. */
export async function plan(
  common: CommonOptions,
  io: ProcessIo,
  options: PlanCliOptions,
  onStore: OnStore,
): Promise<void> {
  const { out, interrupted: signal } = io;
  const planned = await configOf(common, io, common.config);
  const inForce = await fileInForce(common.config, options.inForce);
  const present = inForce === undefined || options.fit !== undefined ? [] : [await configOf(common, io, inForce)];
  const day = await dayOf(io, options, onStore);
  const assumed = { bootMs: options.bootTime * 1000 };
  const threads = options.jobs ?? availableParallelism();
  const replays = new ReplayPool({ day, assumed, sources: [...present, planned], threads });
  const shared = { day, runs: options.runs, assumed, signal, replays };
  const { config } = planned;
  try {
    if (options.fit !== undefined) {
      await printFit(io, { ...shared, config, target: { ...options.fit, pool: options.pool } }, options);
      return;
    }
    const configurations: readonly PlannedConfiguration[] = [
      ...present.map((each) => ({ name: 'in force', config: each.config })),
      { name: present.length === 0 ? 'as configured' : 'new', config },
    ];
    const result = await planOf({ ...shared, configurations, onProgress: (text) => out.note(text) });
    out.print(options.format === 'json' ? JSON.stringify(result, undefined, 2) : planText(result));
  } finally {
    await replays.close();
  }
}

async function printFit(
  { out }: ProcessIo,
  options: Parameters<typeof fit>[0],
  { format }: Pick<PlanCliOptions, 'format'>,
): Promise<void> {
  const { target } = options;
  try {
    const result = await fit({ ...options, onTrial: (trial) => out.note(trialText(trial, target)) });
    out.print(format === 'json' ? JSON.stringify(result, undefined, 2) : fitText(result, target));
    if (result.limit === null) throw new CommandError('no limit holds the target');
  } catch (error) {
    throw error instanceof FitError ? new CommandError(error.message) : error;
  }
}

/** Returns the configuration to compare with; undefined if there is only one. */
async function fileInForce(file: string, named: string | undefined): Promise<string | undefined> {
  const inForce = named ?? INSTALLED_FILE;
  if (resolve(inForce) === resolve(file)) return undefined;
  if (named !== undefined) return named;
  try {
    await access(inForce);
    return inForce;
  } catch {
    // Without an installation here, there is nothing to compare with.
    return undefined;
  }
}

async function configOf(common: CommonOptions, io: ProcessIo, file: string): Promise<ConfigSource> {
  const zookeeper = 'optional';
  const result = await readConfig({ ...common, config: file }, io, { zookeeper });
  if (result.ok) {
    const source = { file: resolve(file), secureFile: common.secure, env: { ...io.env }, zookeeper } as const;
    return { config: result.config, source };
  }
  const problems = result.problems.map((problem) => `  ${formatProblem(problem)}`);
  throw new CommandError(`the configuration cannot be used:\n${problems.join('\n')}`);
}

async function dayOf(io: ProcessIo, options: PlanCliOptions, onStore: OnStore): Promise<Day> {
  const { requests = [], launcher = [], since } = options;
  const sources: readonly DaySource[] =
    requests.length > 0
      ? requests.map(fileSource)
      : (await readJournals(io, launcher, onStore)).map(({ launcher: name, text }) => ({
          name: `the journal of ${name}`,
          lines: text.split('\n'),
        }));
  // A file is replayed as it is.
  const sinceMs = since !== undefined ? since * 1000 : requests.length > 0 ? undefined : DAY_MS;
  try {
    return await readDay(sources, { sinceMs });
  } catch (error) {
    throw error instanceof DayError ? new CommandError(error.message, { cause: error }) : error;
  }
}
