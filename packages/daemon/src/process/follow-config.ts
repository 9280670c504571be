/** Applies changes of the configuration to a daemon. Logs and counts refused changes. */

import { type LoadOptions, type LoadResult, formatProblem, type NodepoolConfig, ConfigWatcher } from '@nodepool/config';
import type { Logger, Gauge, Metrics, Clock, TaskSupervisor } from '@nodepool/core';

/** Gauge of problems in the configuration file; 0 while the file is in force. */
export const CONFIGURATION_PROBLEMS: Gauge<never> = {
  kind: 'gauge',
  name: 'nodepool_configuration_problems',
  help: 'Number of problems in the refused configuration; 0 if the configuration of the file is in force.',
  labels: [],
  statsd: () => [],
};

export interface FollowConfigOptions {
  readonly load: LoadOptions;
  readonly loaded: Extract<LoadResult, { ok: true }>;
  readonly clock: Clock;
  readonly tasks: TaskSupervisor;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Applies a changed configuration. */
  readonly apply: (config: NodepoolConfig) => void | Promise<void>;
}

/** Creates the watcher; the caller starts and stops it. */
export function followConfig(options: FollowConfigOptions): ConfigWatcher {
  const { load, loaded, clock, tasks, log, metrics, apply } = options;
  metrics.set(CONFIGURATION_PROBLEMS, {}, 0);
  let warned = loaded.warnings.map(formatProblem);
  return new ConfigWatcher({
    ...load,
    initial: loaded,
    clock,
    tasks,
    listener: {
      accepted: () => {
        metrics.set(CONFIGURATION_PROBLEMS, {}, 0);
        log.info('The configuration is valid again and in force');
      },
      changed: (config, _diff, warnings) => {
        log.info('Applying the changed configuration');
        const problems = warnings.map(formatProblem);
        for (const problem of problems) {
          if (!warned.includes(problem)) log.warn('Problem of the configuration', { problem });
        }
        warned = problems;
        tasks.run('apply the configuration', async () => apply(config));
      },
      refused: (problems) => {
        metrics.set(CONFIGURATION_PROBLEMS, {}, problems.length);
        log.error('The changed configuration is refused; the previous one stays in force', undefined, {
          problems: problems.map(formatProblem),
        });
      },
    },
  });
}
