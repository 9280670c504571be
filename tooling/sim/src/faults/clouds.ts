/** Faults of the cloud and of drivers. */

import type { CloudSettings, Fault } from '@nodepool/driver-example';
import { between, oneOf } from '../chance.js';
import { NO_CLOUD_FAULTS } from '../cloud-view.js';
import { CALM_CLOUD } from '../world.js';
import type { InjectedFault, WeightedFault } from './fault-context.js';

const FAULTS: readonly Fault[] = [
  'create-errors',
  'lost-answers',
  'failed-instances',
  'stuck-instances',
  'delete-errors',
  'list-errors',
  'capacity-errors',
  'auth-errors',
];

/** Unusual cloud settings. */
const UNUSUAL_SETTINGS: readonly { readonly what: string; readonly settings: Partial<CloudSettings> }[] = [
  { what: 'takes few calls', settings: { callsPerSecond: 2 } },
  { what: 'lists what was, not what is', settings: { listLagMs: [2000, 20_000] } },
  { what: 'deletes for ages', settings: { deleteTimeMs: [20_000, 90_000] } },
  { what: 'boots for ages', settings: { bootTimeMs: [20_000, 200_000] } },
];

const CALL_FAULTS = ['throttled', 'unreceived', 'unanswered', 'misstatedLimits'] as const;

const spoil: InjectedFault = ({ world, random, later }) => {
  const fault = oneOf(random, FAULTS) ?? 'create-errors';
  const rate = 0.1 + random.next() * 0.6;
  const faults = { ...CALM_CLOUD.faults, [fault]: rate } as CloudSettings['faults'];
  const instances = random.next() < 0.3 ? between(random, 2, 10) : Infinity;
  world.checker.step(`the cloud has ${fault} (${rate.toFixed(2)}) and capacity for ${instances}`);
  world.cloud.configure({ faults, quota: { instances, cores: Infinity, ram: Infinity } });
  world.scanFailures = random.next() < 0.3 ? random.next() / 2 : 0;
  later(1000, 30_000, () => {
    world.cloud.configure(CALM_CLOUD);
    world.scanFailures = 0;
  });
};

const beOdd: InjectedFault = ({ world, random, later }) => {
  const oddity = oneOf(random, UNUSUAL_SETTINGS);
  if (oddity === undefined) return;
  world.checker.step(`the cloud ${oddity.what}`);
  world.cloud.configure(oddity.settings);
  later(5000, 40_000, () => world.cloud.configure(CALM_CLOUD));
};

const badWeather: InjectedFault = ({ world, random, later }) => {
  const what = oneOf(random, CALL_FAULTS) ?? 'throttled';
  const rate = 0.1 + random.next() * 0.4;
  world.checker.step(`calls to the cloud are ${what} (${rate.toFixed(2)})`);
  world.cloudFaults[what] = rate;
  later(1000, 30_000, () => Object.assign(world.cloudFaults, NO_CLOUD_FAULTS));
};

export const destroyInstance: InjectedFault = ({ world, random }) => {
  const ours = world.cloud.existingInstances().filter(({ tags }) => tags['theirs'] === undefined);
  const instance = oneOf(random, ours);
  if (instance === undefined) return;
  world.checker.step(`the host of ${instance.id} breaks down`);
  world.cloud.destroyInstance(instance.id);
};

const breakDriver: InjectedFault = ({ world, random, later }) => {
  const mode = oneOf(random, ['throws', 'hangs', 'nonsense'] as const) ?? 'throws';
  world.checker.step(`the driver of gamma goes wrong: ${mode}`);
  Object.assign(world.driverFaults, { mode, rate: 0.2 + random.next() * 0.8 });
  later(5000, 60_000, () => (world.driverFaults.mode = 'none'));
};

export const CLOUD_FAULTS: readonly WeightedFault[] = [
  [6, spoil],
  [3, beOdd],
  [3, badWeather],
  [2, destroyInstance],
  [3, breakDriver],
];
