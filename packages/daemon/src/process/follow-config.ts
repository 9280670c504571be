/** Applies changes of the configuration to a daemon. Logs and counts refused changes. */

import { isDeepStrictEqual } from 'node:util';
import type { ConfigDiff, LoadOptions, LoadResult, NodepoolConfig } from '@nodepool/config';
import { ConfigWatcher, formatProblem } from '@nodepool/config';
import { gauge } from '@nodepool/core';
import type { Clock, LogFields, Logger, Metrics, TaskSupervisor } from '@nodepool/core';
import type { ZooKeeper } from '@nodepool/zookeeper';

/** Gauge of problems in the configuration file; 0 while the file is in force. */
export const CONFIGURATION_PROBLEMS = gauge<never>(
  'nodepool_configuration_problems',
  [],
  'Problems in the refused configuration.',
);

const OF_ZOOKEEPER = ['chroot', 'zookeeper-tls', 'zookeeper-timeout'] as const;
type StartSetting = (typeof OF_ZOOKEEPER)[number] | FollowConfigOptions['readAtStart'][number];

export interface WatchConfigOptions {
  readonly load: LoadOptions;
  readonly loaded: Extract<LoadResult, { ok: true }>;
  readonly clock: Clock;
  readonly tasks: TaskSupervisor;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Applies a changed configuration. */
  readonly apply: (config: NodepoolConfig) => void | Promise<void>;
}

export interface FollowConfigOptions extends WatchConfigOptions {
  /** Uses the changed servers. */
  readonly zooKeeper: Pick<ZooKeeper, 'updateServers'>;
  /** Settings that the program reads only at its start, in addition to those of its connection to ZooKeeper. */
  readonly readAtStart: readonly ('webapp' | 'images-dir')[];
}

/** Creates the watcher of a daemon that is connected to ZooKeeper; the caller starts and stops it. */
export function followConfig(options: FollowConfigOptions): ConfigWatcher {
  const { loaded, log, zooKeeper, readAtStart, apply } = options;
  let { servers } = loaded.config.zookeeper;
  const applyServers = (changed: readonly string[]): void => {
    if (isDeepStrictEqual(changed, servers)) return;
    servers = changed;
    zooKeeper.updateServers(servers);
  };
  const noteSettingsReadAtStart = (config: NodepoolConfig): void => {
    const [inUse, now] = [settingsReadAtStart(loaded.config), settingsReadAtStart(config)];
    const names = [...OF_ZOOKEEPER, ...readAtStart].filter((name) => !isDeepStrictEqual(inUse[name], now[name]));
    if (names.length > 0) log.warn('Changed settings take effect at the next start of the program', { names });
  };
  return watchConfig({
    ...options,
    apply: (config) => {
      applyServers(config.zookeeper.servers);
      noteSettingsReadAtStart(config);
      return apply(config);
    },
  });
}

/** Creates a watcher that logs and counts what it finds; the caller starts and stops it. */
export function watchConfig({ load, loaded, clock, tasks, log, metrics, apply }: WatchConfigOptions): ConfigWatcher {
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
      changed: (config, diff, warnings) => {
        log.info('Applying the changed configuration', namesIn(diff));
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

/** Returns the settings that no program can change while it runs. */
function settingsReadAtStart({
  zookeeper,
  webapp,
  imagesDir,
}: NodepoolConfig): Readonly<Record<StartSetting, unknown>> {
  return {
    chroot: zookeeper.chroot,
    'zookeeper-tls': zookeeper.tls,
    'zookeeper-timeout': zookeeper.sessionTimeoutMs,
    webapp,
    'images-dir': imagesDir,
  };
}

/** Returns the changed names by the parts of the configuration: `+name` is new, `-name` was removed. */
function namesIn({ providers, labels, diskImages, tenantLimits, drivers }: ConfigDiff): LogFields {
  const parts = { providers, labels, disk_images: diskImages, tenant_limits: tenantLimits, drivers };
  return Object.fromEntries(
    Object.entries(parts).flatMap(([part, { added, removed, changed }]) => {
      const names = [...added.map((name) => `+${name}`), ...removed.map((name) => `-${name}`), ...changed];
      return names.length === 0 ? [] : [[part, names]];
    }),
  );
}
