/** Which drivers a launcher uses is told, and a driver that was upgraded is used from the next reload on. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  MetricsRegistry,
  openPrometheus,
  silentLogger,
  type DriverPackage,
  type Logger,
  type NodepoolConfig,
} from '@nodepool/core';
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

function using(version: string, warnings: readonly string[] = []): Partial<NodepoolConfig> {
  const from: DriverPackage = {
    name: 'example',
    package: '@nodepool/driver-example',
    version,
    api: 1,
    folder: '/srv/nodepool/node_modules/@nodepool/driver-example',
    warnings,
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
  it('are told with their versions, in the component record and the metrics', async () => {
    await world.launcher(sections, 'launcher1', using('1.2.3'));
    expect(component()).toEqual({ example: '1.2.3' });
    expect(await driverInfo()).toEqual([
      'nodepool_driver_info{driver="example",package="@nodepool/driver-example",version="1.2.3",api="1"} 1',
    ]);
  });

  it('are used in their new version once they were upgraded, with nothing else changed', async () => {
    const { launcher } = await world.launcher(sections, 'launcher1', using('1.2.3'));
    await world.during(launcher.apply(world.config(sections, using('1.3.0'))));
    await world.until('the new version is told', () => JSON.stringify(component()) === '{"example":"1.3.0"}');
    await world.until('the provider serves again', () => launcher.ready);
    expect(await driverInfo()).toEqual([expect.stringContaining('version="1.3.0"')]);
    expect(lines.filter((line) => line.startsWith('Stopping provider'))).toHaveLength(1);
    expect(lines).toContainEqual(expect.stringMatching(/^Using another version of the driver .*"before":"1.2.3"/));
  });

  it('keep their providers running when they are the same as before', async () => {
    const { launcher } = await world.launcher(sections, 'launcher1', using('1.2.3'));
    await world.during(launcher.apply(world.config(sections, using('1.2.3'))));
    expect(lines.filter((line) => line.startsWith('Stopping provider'))).toEqual([]);
  });

  it('that need a restart to be upgraded are complained about, once', async () => {
    const { launcher } = await world.launcher(sections, 'launcher1', using('1.2.3'));
    const stale = using('1.2.3', ['1.3.0 is installed, and 1.2.3 still runs']);
    for (let reloads = 0; reloads < 2; reloads += 1) await world.during(launcher.apply(world.config(sections, stale)));
    expect(lines.filter((line) => line.startsWith('The driver is not as it should be'))).toHaveLength(1);
  });
});
