/** A site in trouble: page, explain, describe, doctor, log, metrics and alerts name the same reason. */

import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { sleep, systemClock } from '@nodepool/core';
import { freePorts, zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { configFileOf, exampleConfig, Program, programPath, startLauncher } from '@nodepool/harness';
import { Prometheus, type PrometheusData } from './prometheus.js';

const WAIT_LIMIT_MS = 120_000;
const RULES = join(__dirname, '..', '..', '..', 'docs', 'examples', 'alerts.yaml');
const run = promisify(execFile);

let folder: string;
let zooKeeper: ZooKeeperForTests | undefined;
const programs: Program[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-trouble-'));
});
afterEach(async () => {
  for (const program of programs.splice(0).reverse()) await program.kill();
  await zooKeeper?.stop();
  zooKeeper = undefined;
  rmSync(folder, { recursive: true });
});

async function started(name: string, program: Parameters<typeof programPath>[0], args: string[]): Promise<Program> {
  const logFile = join(folder, `${name}.log`);
  const running = await Program.start({
    name,
    command: process.execPath,
    args: [programPath(program), ...args],
    logFile,
  });
  programs.push(running);
  return running;
}

/** Returns the output of a command, whatever its exit status is. */
async function nodepool(...args: string[]): Promise<string> {
  const file = configFileOf({ folder, name: 'launcher' });
  try {
    return (await run(process.execPath, [programPath('nodepool'), '-c', file, ...args])).stdout;
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}

it('a missing machine type, a dead cloud and a maintenance page look the same in all views, and fire the shipped alerts', async () => {
  zooKeeper = await zooKeeperForTests();
  const [webappPort = 0, prometheusPort = 0, cloudPort = 0] = await freePorts(3);
  const { servers } = zooKeeper;
  const cloud = await started('cloud', 'nodepool-example-cloud', ['--port', String(cloudPort)]);
  const labels = ['small', 'giant'].map((size) => ({ name: size, 'cloud-image': 'debian', size }));
  const config = {
    ...exampleConfig({ zooKeeper: { servers }, webappPort, labels: ['small', 'giant'] }),
    providers: [
      {
        ...{ name: 'cloud', driver: 'example', endpoint: `http://127.0.0.1:${cloudPort}` },
        ...{ 'cloud-images': [{ name: 'debian' }], pools: [{ name: 'main', 'host-key-checking': false, labels }] },
      },
    ],
  };
  const launcher = await startLauncher({ folder, name: 'launcher', config });
  programs.push(launcher);
  const targets = [`127.0.0.1:${webappPort}`];
  const prometheus = await Prometheus.start({ folder, port: prometheusPort, targets, rules: RULES });
  programs.push(prometheus.program);
  const log = (): string => readFileSync(launcher.logFile, 'utf8');
  const page = async (): Promise<string> => {
    const url = `http://127.0.0.1:${webappPort}/status/v1/overview`;
    return JSON.stringify(await (await fetch(url, { headers: { Connection: 'close' } })).json());
  };
  const alerts = (name: string, states: readonly string[]): Promise<PrometheusData> =>
    prometheus.ask('alerts', ({ alerts: found = [] }) =>
      found.some(({ labels: { alertname }, state }) => alertname === name && states.includes(state)),
    );
  const until = (what: string, condition: () => Promise<boolean>): Promise<void> =>
    launcher.while(what, WAIT_LIMIT_MS, async (signal) => {
      while (!(await condition())) await sleep(systemClock, 200, signal);
    });

  await until('serves its pools', () => Promise.resolve(log().includes('Provider serves its pools')));
  await until('reports the missing machine type', async () => (await page()).includes('label-not-ready'));
  const missing = 'the cloud has no size "giant"; it has: small';
  expect(await nodepool('explain', 'label', 'giant')).toContain(missing);
  expect(await nodepool('describe', 'label', 'giant')).toContain(missing);
  expect(await nodepool('doctor')).toContain(missing);
  expect(log()).toMatch(/WARNING .*The pool cannot serve a label.*giant/);
  await prometheus.ask('query?query=nodepool_label_not_ready', ({ result = [] }) => result.length === 1);
  await alerts('NodepoolProblemLasts', ['pending', 'firing']);

  await cloud.kill();
  await started('requestor', 'nodepool', ['-c', configFileOf({ folder, name: 'launcher' }), 'request', 'small']);
  const { alerts: fired } = await alerts('NodepoolProviderInTrouble', ['firing']);
  expect(fired?.map(({ annotations: { summary } }) => summary)).toContain(
    'Provider cloud is unreachable: it launches no nodes.',
  );
  await until('names the request', async () => (await page()).includes('1 request waits for it'));
  const [id = ''] = (await nodepool('request-list', '-o', 'name')).split('\n');
  for (const view of [
    await page(),
    await nodepool('describe', 'provider', 'cloud'),
    await nodepool('explain', 'request', id),
    await nodepool('explain', 'label', 'small'),
    await nodepool('doctor'),
    log(),
  ]) {
    expect(view).toMatch(/ECONNREFUSED/);
    expect(view).toMatch(/unreachable|fails/);
  }
  expect(log().match(/WARNING .*The provider is unreachable/g)).toHaveLength(1);
  await prometheus.ask(
    `query?query=${encodeURIComponent('nodepool_oldest_unfulfilled_request_seconds{label="small"} > 0')}`,
    ({ result = [] }) => result.length === 1,
  );

  const isOver = async (times: number): Promise<void> => {
    await until('serves again', () =>
      Promise.resolve(log().match(/WARNING .*The provider serves its pools again/g)?.length === times),
    );
    await prometheus.ask('alerts', ({ alerts: found = [] }) =>
      found.every(({ labels: { alertname } }) => alertname !== 'NodepoolProviderInTrouble'),
    );
  };
  const again = await started('cloud-again', 'nodepool-example-cloud', ['--port', String(cloudPort)]);
  await isOver(1);

  // A maintenance page: the cloud answers, and demands that it is left alone.
  await again.kill();
  const page429 = createServer((_, response) => response.writeHead(429, { 'Retry-After': '600' }).end());
  page429.listen(cloudPort, '127.0.0.1');
  await nodepool('delete', '--now', ...(await nodepool('list', '-o', 'name')).split('\n').filter(Boolean));
  const command = ['-c', configFileOf({ folder, name: 'launcher' }), 'request', 'small'];
  const requestor = await started('another-requestor', 'nodepool', command);
  const { alerts: second } = await alerts('NodepoolProviderInTrouble', ['firing']);
  expect(second?.map(({ annotations: { summary } }) => summary)).toContain(
    'Provider cloud is unavailable: it launches no nodes.',
  );
  for (const view of [
    await page(),
    await nodepool('describe', 'provider', 'cloud'),
    await nodepool('explain', 'label', 'small'),
    await nodepool('doctor'),
    log(),
  ]) {
    expect(view).toMatch(/429, Retry-After: 600/);
    expect(view).toMatch(/unavailable|demands fewer calls/);
  }
  expect(log()).toMatch(/WARNING .*The provider is unavailable/);
  expect(await nodepool('describe', 'label', 'small')).not.toContain('serves requests');
  // Without requests, only the checks of the launcher show that it is over.
  await requestor.kill();
  page429.close();
  page429.closeAllConnections();
  await started('cloud-at-last', 'nodepool-example-cloud', ['--port', String(cloudPort)]);
  await isOver(2);
});
