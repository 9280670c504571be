/** Trouble appears in every view within 15 seconds, with the same reason: page, explanations and metrics. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { silentLogger, TransientError, type Provider } from '@nodepool/core';
import { RecentFailures } from '@nodepool/status';
import type { StatusModel } from '@nodepool/status/web';
import { faultyDriver } from '../support/faulty-driver.js';
import { StatusSite } from '../support/status-site.js';
import { pool, provider, World } from '../support/world.js';

let world: World;
let site: StatusSite | undefined;

beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  await site?.stop();
  site = undefined;
  expect(await world.end()).toEqual([]);
});

/** Returns a provider whose cloud refuses connections. */
function away(each: Provider): Partial<Provider> {
  const refused = (): Promise<never> => Promise.reject(new TransientError('the connection was refused'));
  return {
    listNodes: refused,
    cleanupLeakedResources: refused,
    getRequestHandler: (...args) =>
      new Proxy(each.getRequestHandler(...args), {
        get: (target, name): unknown => (name === 'launch' ? refused : Reflect.get(target, name)),
      }),
  };
}

it('a cloud that refuses connections is shown within 15 seconds, with the requests that hang on it', async () => {
  let isAway = false;
  const overrides = (each: Provider): Partial<Provider> => (isAway ? away(each) : {});
  const options = { config: faultyDriver(world.cloud, overrides) };
  site = await StatusSite.start(world, [provider('demo', [pool('main', ['small'])])], options);
  expect(await site.metrics(/provider_state.* 1$|nodepool_problems/)).toEqual([
    'nodepool_provider_state{provider="demo",state="serving"} 1',
  ]);
  isAway = true;
  const id = await world.submit(['small']);
  await world.submit(['stray']);
  await world.clock.advance(10_000);
  const { problems } = await site.get<StatusModel.OverviewDocument>('overview');
  expect(problems).toMatchObject([
    {
      ...{ kind: 'provider', severity: 'critical', title: 'Provider demo is unreachable', cause: 'cloud' },
      details: [expect.stringContaining('the connection was refused')],
      effect: '1 request waits for it',
    },
    { kind: 'failed-requests' },
  ]);
  const reason = problems[0]!.details[0]!;
  expect((await site.get<StatusModel.ProviderDocument>('provider/demo')).provider).toMatchObject({
    state: 'unreachable',
    reason,
  });
  expect(await site.explain(`request/${id}`)).toContain('the connection was refused');
  expect(await site.explain('label/small')).toContain('the connection was refused');
  expect(await site.metrics(/provider_state.* 1$|nodepool_problems|nodepool_unfulfilled.* 1$/)).toEqual([
    'nodepool_provider_state{provider="demo",state="unreachable"} 1',
    'nodepool_unfulfilled_requests{label="small",state="requested"} 1',
    'nodepool_problems{problem="provider",severity="critical"} 1',
    'nodepool_problems{problem="failed-requests",severity="warning"} 1',
  ]);
  const [oldest] = await site.metrics(/oldest_unfulfilled.*small/);
  expect(Number(oldest?.split(' ')[1])).toBeGreaterThan(10);
  isAway = false;
  await world.inState(id, 'fulfilled');
  const kinds = async (): Promise<readonly string[]> =>
    (await site!.get<StatusModel.OverviewDocument>('overview')).problems.map(({ kind }) => kind);
  expect(await kinds()).toEqual(['failed-requests']);
});

it('a label whose machine type is missing in the cloud is shown before a request fails, and after it', async () => {
  const logged = new RecentFailures(world.clock);
  world.log = logged.watch(silentLogger);
  const labels = ['small', 'giant'].map((size) => ({
    name: size === 'giant' ? 'large' : size,
    'cloud-image': 'debian',
    size,
  }));
  site = await StatusSite.start(world, [provider('demo', [{ ...pool('main', []), labels }])]);
  const reason = 'the cloud has no size "giant"; it has: small';
  const notReady = {
    kind: 'label-not-ready',
    title: 'Pool demo/main cannot serve the label large',
    cause: 'configuration',
  };
  const problems = async (): Promise<StatusModel.OverviewDocument['problems']> =>
    (await site!.get<StatusModel.OverviewDocument>('overview')).problems;
  expect(await problems()).toMatchObject([
    {
      ...{ ...notReady, severity: 'warning', effect: 'its requests will fail' },
      details: [expect.stringContaining(`cannot be served: ${reason}`)],
    },
  ]);
  expect(await site.explain('label/large')).toContain(reason);
  expect(await site.metrics(/label_not_ready|nodepool_problems/)).toEqual([
    'nodepool_label_not_ready{provider="demo",pool="main",label="large"} 1',
    'nodepool_problems{problem="label-not-ready",severity="warning"} 1',
  ]);
  await world.clock.advance(120_000);
  expect(logged.list()).toMatchObject([
    { message: 'The pool cannot serve a label; requests for it would fail', times: 1, fields: { label: 'large' } },
  ]);
  await world.inState(await world.submit(['large']), 'failed');
  expect(await problems()).toMatchObject([{ ...notReady, severity: 'critical', effect: '1 request failed' }]);
});

describe('another launcher', () => {
  const demo = provider('demo', [pool('main', ['small'])]);
  const kinds = async (): Promise<readonly string[]> =>
    (await site!.get<StatusModel.OverviewDocument>('overview')).problems.map(({ kind, title, details }) =>
      [kind, title, ...details].join(' | '),
    );

  it('is shown with the providers that it cannot serve, and with another configuration', async () => {
    site = await StatusSite.start(world, [demo]);
    const brokenProviders = new Map([['broken', { driver: 'nonsense', reason: 'no package provides it' }]]);
    await world.launcher([demo], 'launcher2', { brokenProviders });
    await world.launcher([provider('demo', [pool('main', ['small', 'large'])])], 'launcher3');
    expect(await kinds()).toEqual([
      'launcher-without-driver | Launcher launcher2 cannot serve 1 provider | broken: no package provides it',
    ]);
    await world.clock.advance(130_000);
    expect(await kinds()).toEqual([
      expect.stringMatching(
        /^different-configurations .* \| provider demo: \w{12} on launcher1, launcher2; \w{12} on launcher3$/,
      ),
      'launcher-without-driver | Launcher launcher2 cannot serve 1 provider | broken: no package provides it',
    ]);
    const { components } = await site.get<StatusModel.ProgramsDocument>('components');
    const [one, two, three] = components.map(({ configuration }) => configuration);
    expect([one === two, one === three]).toEqual([true, false]);
  });

  it('is shown with the trouble that it alone sees, until it ends', async () => {
    let isAway = false;
    const overrides = (each: Provider): Partial<Provider> => (isAway ? away(each) : {});
    site = await StatusSite.start(world, [provider('home', [pool('main', ['small'])])]);
    await world.launcher([demo], 'launcher2', faultyDriver(world.cloud, overrides));
    isAway = true;
    await world.clock.advance(180_000);
    expect(await kinds()).toEqual([
      expect.stringMatching(/^provider \| Launcher launcher2 sees that provider demo is unreachable \| .*was refused/),
    ]);
    isAway = false;
    await world.clock.advance(180_000);
    expect(await kinds()).toEqual([]);
  });
});

describe('a launcher that leaves', () => {
  const problems = async (): Promise<StatusModel.OverviewDocument['problems']> =>
    (await site!.get<StatusModel.OverviewDocument>('overview')).problems;

  it('may return at first; then its label and its nodes are problems whose remedy is to start it', async () => {
    site = await StatusSite.start(world, [provider('home', [pool('main', ['large'])])]);
    const other = await world.launcher([provider('demo', [pool('main', ['small'])])], 'launcher2');
    const used = await world.during(world.requestor.take(await world.served(['small'])));
    await world.served(['small']);
    await other.stop();
    const left = world.clock.now() / 1000;
    const waiting = await world.submit(['small']);
    await world.clock.advance(10_000);
    expect(await problems()).toEqual([]);
    const why = 'launcher launcher2 has left; the request waits 5 minutes for its return.';
    expect(await site.explain(`request/${waiting}`)).toContain(why);
    const unserved = {
      ...{ kind: 'provider-unserved', severity: 'warning' },
      title: 'Provider demo has 2 nodes, but no launcher serves it',
      details: ['last served by launcher2'],
      effect: '1 in use is not deleted after use, 1 is neither used nor deleted',
      remedy: expect.stringMatching(/^Start the launcher on launcher2, or .*Only if its cloud no longer exists/),
    };
    const remedy = 'Start the launcher on launcher2, or add the label to another pool.';
    await world.clock.advance(30_000);
    expect(await problems()).toMatchObject([
      { kind: 'label-without-pool', severity: 'critical', details: [why], effect: '1 request waits for it', remedy },
      unserved,
    ]);
    // The pool of this launcher declines the request once the other one does not return.
    await world.inState(waiting, 'failed');
    expect(await problems()).toMatchObject([unserved, { kind: 'failed-requests', remedy }]);
    expect((await problems())[0]?.since).toBeCloseTo(left, 0);
    await world.during(world.requestor.giveBack(used));
    await world.launcher([provider('demo', [pool('main', ['small'])])], 'launcher2');
    await world.clock.advance(10_000);
    expect((await problems()).map(({ title }) => title)).toEqual(['1 request for the label small failed; it is over']);
  });
});

describe('beside another launcher', () => {
  const problems = async (): Promise<readonly StatusModel.Problem[]> =>
    (await site!.get<StatusModel.OverviewDocument>('overview')).problems;

  it('a provider out of service concerns only the requests that this launcher holds', async () => {
    world.cloud.configure({ bootTimeMs: [600_000, 600_000] });
    let isAway = false;
    const overrides = (each: Provider): Partial<Provider> => (isAway ? away(each) : {});
    const options = { config: faultyDriver(world.cloud, overrides) };
    site = await StatusSite.start(world, [provider('demo', [pool('main', ['small'])])], options);
    await world.launcher([provider('demo', [pool('further', ['large'])])], 'launcher2');
    await world.submit(['large']);
    await world.clock.advance(5000);
    isAway = true;
    await world.clock.advance(60_000);
    const effects = async (): Promise<unknown[]> =>
      (await problems()).filter(({ kind }) => kind === 'provider').map(({ title, effect }) => [title, effect]);
    expect(await effects()).toEqual([['Provider demo is unreachable', null]]);
    isAway = false;
    await world.clock.advance(120_000);
    await world.submit(['small']);
    await world.clock.advance(5000);
    isAway = true;
    await world.clock.advance(60_000);
    expect(await effects()).toEqual([['Provider demo is unreachable', '1 request hangs on it']]);
  });

  it('a request that its pool failed has the reason and the host, and no claim of launches', async () => {
    site = await StatusSite.start(world, [provider('home', [pool('main', ['large'])])]);
    await world.launcher([provider('demo', [pool('main', ['small'], { 'max-servers': 1 })])], 'launcher2');
    const id = await world.submit(['small', 'small']);
    await world.inState(id, 'failed');
    await world.clock.advance(5000);
    const why = 'demo/main of launcher2: it needs 2 instances, and the limit of pool main of provider demo is 1';
    expect(await problems()).toMatchObject([
      { kind: 'failed-requests', details: [why], remedy: expect.stringContaining('shows the reason of each pool') },
    ]);
    expect(await site.explain(`request/${id}`)).toContain(`The reasons: ${why}`);
  });

  it('a request whose launcher has ended waits for its return, which its explanation tells at once', async () => {
    world.cloud.configure({ bootTimeMs: [600_000, 600_000] });
    site = await StatusSite.start(world, [provider('home', [pool('main', ['large'])])]);
    const { zk } = await world.launcher([provider('demo', [pool('main', ['small'])])], 'launcher2');
    const id = await world.submit(['small']);
    await world.clock.advance(5000);
    expect(world.stateOf(id)).toBe('pending');
    world.server.partition(zk);
    await world.clock.advance(15_000);
    const why = 'launcher launcher2, which has its nodes, has left; the request waits 5 minutes for its return';
    expect(await site.explain(`request/${id}`)).toContain(why);
    await world.clock.advance(240_000);
    expect(world.stateOf(id)).toBe('pending');
    await world.clock.advance(120_000);
    expect(world.stateOf(id)).toBe('failed');
    world.server.heal(zk);
  });

  it('a request that was served and deleted at once is not called cancelled', async () => {
    site = await StatusSite.start(world, [provider('home', [pool('main', ['large'])])]);
    await world.launcher([provider('demo', [pool('main', ['small'])])], 'launcher2');
    const id = await world.deletedWhenServed(['small']);
    await world.clock.advance(5000);
    const { request } = await site.get<StatusModel.RequestDocument>(`request/${id}`);
    expect(request?.state).toBe('unseen');
    expect(await site.explain(`request/${id}`)).toContain('This launcher did not see how it ended');
  });
});

it('failed requests for labels that no single pool has are not over while their pools have them', async () => {
  site = await StatusSite.start(world, [provider('demo', [pool('main', ['small']), pool('other', ['large'])])]);
  await world.inState(await world.submit(['small', 'large']), 'failed');
  expect((await site.get<StatusModel.OverviewDocument>('overview')).problems).toMatchObject([
    { title: '1 request for the labels large, small failed', severity: 'warning' },
  ]);
  await world.served(['small']);
  await world.served(['large']);
  expect((await site.get<StatusModel.OverviewDocument>('overview')).problems).toMatchObject([{ severity: 'warning' }]);
});

it('failed requests for several labels are over once a request for all of them is served', async () => {
  const main = pool('main', ['small', 'large'], { 'max-servers': 1 });
  site = await StatusSite.start(world, [provider('demo', [main])]);
  await world.inState(await world.submit(['small', 'large']), 'failed');
  await world.clock.advance(1000);
  await world.giveBack(await world.served(['small']));
  await world.giveBack(await world.served(['large']));
  const problems = async (): Promise<unknown> =>
    (await site!.get<StatusModel.OverviewDocument>('overview')).problems.map(({ title }) => title);
  expect(await problems()).toEqual(['1 request for the labels large, small failed']);
  const { launcher } = site.running;
  await world.during(launcher.apply(world.config([provider('demo', [{ ...main, 'max-servers': 2 }])])));
  await world.served(['large', 'small']);
  expect(await problems()).toEqual(['1 request for the labels large, small failed; it is over']);
});

it('a drained pool of this launcher serves no label, and has no capacity', async () => {
  site = await StatusSite.start(world, [provider('demo', [pool('main', ['small'])], { 'max-concurrency': 0 })]);
  const id = await world.submit(['small']);
  await world.clock.advance(5000);
  const drained = 'lets requests wait for capacity or a limit, or is drained';
  expect(await site.explain('label/small')).toContain(drained);
  expect(await site.explain(`request/${id}`)).toContain('the provider is paused (max-concurrency: 0)');
  expect((await site.get<{ pools: unknown }>('capacity')).pools).toMatchObject([
    { pool: 'main', free: { instances: 0 } },
  ]);
});

it('a wait for a limit counts the nodes that hold it and are not listed', async () => {
  site = await StatusSite.start(world, [provider('demo', [pool('main', ['small'], { 'max-servers': 7 })])]);
  for (let count = 0; count < 7; count += 1) await world.during(world.requestor.take(await world.served(['small'])));
  const id = await world.submit(['small']);
  await world.clock.advance(2000);
  const { reason } = await site.get<StatusModel.RequestDocument>(`request/${id}`);
  expect(reason?.heldBy).toHaveLength(5);
  expect(reason?.heldByMore).toBe(2);
});

it('a launch whose request is cancelled is no failed attempt', async () => {
  world.cloud.configure({ bootTimeMs: [60_000, 60_000] });
  site = await StatusSite.start(world, [provider('demo', [pool('main', ['small'])])]);
  const id = await world.submit(['small']);
  await world.inState(id, 'pending');
  await world.clock.advance(5000);
  await world.during(world.requestor.withdraw(id));
  await world.clock.advance(120_000);
  expect(await site.metrics(/attempts_failed/)).toEqual([]);
  const { provider: demo } = await site.get<StatusModel.ProviderDocument>('provider/demo');
  expect(demo).toMatchObject({ launches: { failed: 0 }, failures: [] });
  const { attempts, timeline } = await site.get<StatusModel.RequestDocument>(`request/${id}`);
  expect([attempts, timeline.filter(({ failed }) => failed)]).toEqual([[], []]);
});
