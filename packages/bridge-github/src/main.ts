/** Runs the bridge from its command line to its exit code. */

import {
  parseDaemonCommandLine,
  runService,
  statusEndpoint,
  type LiveSettings,
  type ServiceParts,
} from '@nodepool/daemon';
import type { ProcessSignals } from '@nodepool/daemon/process-setup';
import { connectToZooKeeper } from '@nodepool/store';
import { Bridge } from './bridge.js';
import { PROGRAM } from './program.js';
import { settingsSource } from './settings/settings-source.js';
import type { Settings } from './settings/settings.js';

/** Runs until a stop signal. Exit codes: 0 stopped, 1 could not start, 2 wrong usage. */
export async function main(argv: readonly string[], signals: ProcessSignals): Promise<number> {
  const options = parseDaemonCommandLine(PROGRAM, argv);
  if (typeof options === 'number') return options;
  return runService({
    name: PROGRAM.name,
    options: options.daemon,
    signals,
    connect: connectToZooKeeper,
    webEndpoint: () => statusEndpoint(options.own),
    stopMessage: 'Stopping; jobs continue on their nodes, and the next bridge continues with them',
    source: settingsSource(options.own.github),
    create: createBridge,
  });
}

function createBridge(parts: ServiceParts, settings: LiveSettings<Settings>): Bridge {
  const { version } = PROGRAM;
  const bridge = new Bridge({ ...parts, version, settings: settings.current, env: process.env });
  settings.onChange((changed) => bridge.apply(changed));
  return bridge;
}
