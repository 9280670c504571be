/** Tests that a launcher publishes the drivers that it uses. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MetricsRegistry, openPrometheus } from '@nodepool/daemon';
import { silentLogger, type Logger } from '@nodepool/core';
import type { DriverPackage, NodepoolConfig } from '@nodepool/config';
import { World, pool, provider } from './support/world.js';

let world: World;
let metrics: MetricsRegistry;
let lines: string[];

beforeEach(() => {
  world = new World();
  metrics = new MetricsRegistry({
    clock: world.clock,
    statsd: undefined,
    prometheus: openPrometheus(() => undefined),
    onError: (error) => {
      throw error;
    },
  });
  world.observation = { metrics };
  lines = [];
  const note = (message: string, fields: object = {}): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Logger = { ...silentLogger, info: note, warn: note, with: () => log };
  world.log = log;
});

afterEach(async () => {
  await metrics.close();
  expect(await world.end()).toEqual([]);
});

const sections = [provider('demo', [pool('main', ['small'])])];

function using(
  version: string,
  folder = '/srv/nodepool/node_modules/@nodepool/driver-example',
): Partial<NodepoolConfig> {
  const from: DriverPackage = {
    name: 'example',
    package: '@nodepool/driver-example',
    version,
    api: 1,
    folder,
    warnings: [],
  };
  return { driverPackages: new Map([['example', from]]) };
}

async function driverInfo(): Promise<string[]> {
  const { text } = (await metrics.exposition()) ?? { text: '' };
  return text.split('\n').filter((line) => line.startsWith('nodepool_driver_info{'));
}

function component(): unknown {
  const [first] = world.records('/nodepool/components/launcher').values();
  return first?.['drivers'];
}

describe('the drivers of a launcher', () => {
  it('are reported with their versions in the component record and the metrics', async () => {
    await world.launcher(sections, 'launcher1', using('1.2.3'));
    expect(component()).toEqual({ example: '1.2.3' });
    expect(await driverInfo()).toEqual([
      'nodepool_driver_info{driver="example",package="@nodepool/driver-example",version="1.2.3",api="1"} 1',
    ]);
  });

  it('are replaced if their names mean other packages in an otherwise unchanged configuration', async () => {
    const { launcher } = await world.launcher(sections, 'launcher1', using('1.2.3'));
    await world.during(launcher.apply(world.config(sections, using('1.3.0', '/srv/nodepool/drivers/example'))));
    await world.until('the new version is reported', () => JSON.stringify(component()) === '{"example":"1.3.0"}');
    await world.until('the provider serves again', () => launcher.ready);
    expect(await driverInfo()).toEqual([expect.stringContaining('version="1.3.0"')]);
    expect(lines.filter((line) => line.startsWith('Retiring provider'))).toHaveLength(1);
    expect(lines.filter((line) => line.startsWith('Using driver'))).toEqual([
      expect.stringContaining('"version":"1.2.3"'),
      expect.stringContaining('"version":"1.3.0"'),
    ]);
  });

  it('keep their providers running when they are unchanged', async () => {
    const { launcher } = await world.launcher(sections, 'launcher1', using('1.2.3'));
    await world.during(launcher.apply(world.config(sections, using('1.2.3'))));
    expect(lines.filter((line) => line.startsWith('Retiring provider'))).toEqual([]);
  });
});
