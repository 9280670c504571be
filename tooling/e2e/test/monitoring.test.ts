/** Debian's Prometheus scrapes a launcher and a builder, and accepts the rules of the documentation. */

import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { freePorts, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { FAKE_DIB_COMMAND } from '@nodepool/fake-dib';
import { exampleConfig, startBuilder, startLauncher, type Program } from '@nodepool/harness';
import { sleep, systemClock } from '@nodepool/core';
import { Prometheus, type PrometheusData } from './prometheus.js';

const WAIT_LIMIT_MS = 120_000;
const EXAMPLES = join(__dirname, '..', '..', '..', 'docs', 'examples');
const RULES = join(EXAMPLES, 'alerts.yaml');
/** Panels that are empty in good times, because what they count has not happened. */
const EMPTY_PANELS = new Set([
  'Failed launches by reason',
  'Leaked resources deleted',
  'Answers other than 2xx',
  'Failed builds and uploads',
]);
const run = promisify(execFile);

let folder: string;
let zooKeeper: ZooKeeperForTests | undefined;
const programs: Program[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-monitoring-'));
});
afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
  await zooKeeper?.stop();
  zooKeeper = undefined;
  rmSync(folder, { recursive: true });
});

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets?: readonly { readonly expr: string }[] }[];
}

/** Returns the expressions of the panels, with the variables as Grafana replaces them, by title. */
function panelQueries(): readonly (readonly [title: string, query: string])[] {
  const { panels } = JSON.parse(readFileSync(join(EXAMPLES, 'grafana-dashboard.json'), 'utf8')) as Dashboard;
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => [title, expr.replaceAll('$__rate_interval', '10s').replace(/\$\w+/g, '.*')] as const),
  );
}

it('Prometheus scrapes a launcher and a builder, and a restart of the launcher preserves its history', async () => {
  zooKeeper = await zooKeeperForTests();
  const [webappPort = 0, builderPort = 0, prometheusPort = 0] = await freePorts(3);
  const { servers } = zooKeeper;
  const config = exampleConfig({
    ...{ zooKeeper: { servers }, webappPort, labels: ['small'], minReady: { small: 2 } },
    providers: [{ maxServers: 5 }],
  });
  const state = ['--state-dir', join(folder, 'state')];
  const launcher = await startLauncher({ folder, name: 'launcher', config, args: state });
  programs.push(launcher);
  const args = ['--status-port', String(builderPort), '--status-address', '127.0.0.1'];
  const images = {
    ...config,
    'images-dir': join(folder, 'images'),
    'build-log-dir': join(folder, 'logs'),
    diskimages: [{ name: 'debian', formats: ['raw'], 'dib-cmd': FAKE_DIB_COMMAND }],
  };
  programs.push(await startBuilder({ folder, name: 'builder', config: images, args }));
  const targets = [`127.0.0.1:${webappPort}`, `127.0.0.1:${builderPort}`];
  const prometheus = await Prometheus.start({ folder, port: prometheusPort, targets, rules: RULES });
  programs.push(prometheus.program);
  const ask = prometheus.ask.bind(prometheus);

  const { activeTargets } = await ask(
    'targets',
    ({ activeTargets: found = [] }) => found.length === 2 && found.every(({ health }) => health === 'up'),
  );
  expect(activeTargets?.map(({ lastError }) => lastError)).toEqual(['', '']);
  const phases = await ask(
    'query?query=nodepool_request_phase_duration_seconds_count%7Bphase%3D%22creating%22%7D',
    ({ result }) => Number(result?.[0]?.value[1] ?? 0) >= 2,
  );
  expect(phases.result?.[0]?.metric).toMatchObject({ phase: 'creating', provider: 'example', label: 'small' });
  const ofBoth = ({ result }: PrometheusData): boolean => result?.length === 2;
  const connected = await ask('query?query=nodepool_zookeeper_connected', ofBoth);
  expect(connected.result?.map(({ value }) => value[1])).toEqual(['1', '1']);
  await ask('query?query=nodepool_process_cpu_seconds_total', ofBoth);
  await ask('query?query=nodepool_builder_work', ({ result }) => (result?.length ?? 0) > 0);
  const panels = panelQueries();
  expect(panels.length).toBeGreaterThan(30);
  for (const [title, query] of panels) {
    await ask(
      `query?query=${encodeURIComponent(query)}`,
      // No bridge for GitHub Actions runs here.
      ({ result = [] }) => result.length > 0 || EMPTY_PANELS.has(title) || query.includes('nodepool_github_'),
    );
  }
  const { groups } = await ask(
    'rules',
    ({ groups: found = [] }) =>
      found.length > 0 && found.every(({ rules }) => rules.every(({ health }) => health !== 'unknown')),
  );
  const rules = groups?.flatMap((group) => group.rules) ?? [];
  expect(rules.length).toBeGreaterThan(5);
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);

  const page = `http://127.0.0.1:${webappPort}/status/v1/requests?state=fulfilled`;
  const fulfilled = async (): Promise<readonly { readonly id: string }[]> => {
    const response = await fetch(page, { headers: { Connection: 'close' } });
    return ((await response.json()) as { rows: { id: string }[] }).rows;
  };
  const before = await fulfilled();
  expect(before).toHaveLength(2);
  await launcher.stop();
  const again = await startLauncher({ folder, name: 'launcher-again', config, args: state });
  programs.push(again);
  await again.while('serves its pools', WAIT_LIMIT_MS, async (signal) => {
    while (!readFileSync(again.logFile, 'utf8').includes('Provider serves its pools')) {
      await sleep(systemClock, 50, signal);
    }
  });
  expect(await fulfilled()).toEqual(before);
});

it('promtool accepts the alert rules, and the alerts fire when they should', async () => {
  await expect(run('/usr/bin/promtool', ['check', 'rules', RULES])).resolves.toMatchObject({
    stdout: expect.stringContaining('SUCCESS'),
  });
  const tests = join(__dirname, 'prometheus', 'alerts-test.yaml');
  await expect(run('/usr/bin/promtool', ['test', 'rules', tests])).resolves.toMatchObject({
    stdout: expect.stringContaining('SUCCESS'),
  });
});
