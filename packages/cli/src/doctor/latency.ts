/** Measures the session of this program with ZooKeeper. */

import type { Clock } from '@nodepool/core';
import { NODEPOOL_ROOT } from '@nodepool/store';
import type { ZooKeeperConfig } from '@nodepool/config';
import type { ZooKeeper } from '@nodepool/zookeeper';
import { Findings, type Finding } from './finding.js';

const READS = 10;
const SLOW_MS = 100;

export async function checkLatency(
  zooKeeper: ZooKeeper,
  config: ZooKeeperConfig,
  clock: Clock,
): Promise<readonly Finding[]> {
  const findings = new Findings('zookeeper');
  const times: number[] = [];
  for (let count = 0; count < READS; count += 1) {
    const start = clock.monotonic();
    await zooKeeper.exists(NODEPOOL_ROOT);
    times.push(clock.monotonic() - start);
  }
  times.sort((a, b) => a - b);
  const [median, longest] = [times[Math.floor(READS / 2)] ?? 0, times.at(-1) ?? 0];
  const text = `${READS} reads: median ${median.toFixed(1)} ms, longest ${longest.toFixed(1)} ms`;
  if (median > SLOW_MS) {
    findings.warning('connection', text, 'run launchers near the ensemble, and check its load and disks');
  } else findings.ok('connection', text);
  const { session } = zooKeeper;
  if (session !== undefined && session.timeoutMs !== config.sessionTimeoutMs) {
    const [got, wanted] = [session.timeoutMs / 1000, config.sessionTimeoutMs / 1000];
    findings.info('connection', `the server grants a session timeout of ${got} s; zookeeper-timeout is ${wanted} s`);
  }
  return findings.list;
}
