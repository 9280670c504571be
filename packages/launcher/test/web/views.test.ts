/** Trouble appears in every view within 15 seconds, with the same reason: page, explanations and metrics. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { TransientError, type Provider } from '@nodepool/core';
import type { OverviewDocument, ProviderDocument } from '../../src/web/status/client/model.js';
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

it('a cloud that refuses connections is shown within 15 seconds, with the requests that hang on it', async () => {
  let isAway = false;
  const refused = (): Promise<never> => Promise.reject(new TransientError('the connection was refused'));
  const overrides = (each: Provider): Partial<Provider> =>
    isAway
      ? {
          listNodes: refused,
          cleanupLeakedResources: refused,
          getRequestHandler: (...args) => {
            const handler = each.getRequestHandler(...args);
            return new Proxy(handler, {
              get: (target, name): unknown => (name === 'launch' ? refused : Reflect.get(target, name)),
            });
          },
        }
      : {};
  const options = { config: faultyDriver(world.cloud, overrides) };
  site = await StatusSite.start(world, [provider('demo', [pool('main', ['small'])])], options);
  expect(await site.metrics(/provider_state.* 1$|nodepool_problems/)).toEqual([
    'nodepool_provider_state{provider="demo",state="serving"} 1',
  ]);
  isAway = true;
  const id = await world.submit(['small']);
  await world.submit(['stray']);
  await world.clock.advance(10_000);
  const { problems } = await site.get<OverviewDocument>('overview');
  expect(problems).toMatchObject([
    {
      ...{ kind: 'provider', severity: 'critical', title: 'Provider demo is unreachable', cause: 'cloud' },
      details: [expect.stringContaining('the connection was refused')],
      effect: '1 request waits for it',
    },
    { kind: 'failed-requests' },
  ]);
  const reason = problems[0]!.details[0]!;
  expect((await site.get<ProviderDocument>('provider/demo')).provider).toMatchObject({ state: 'unreachable', reason });
  expect(await site.explain(`request/${id}`)).toContain('the connection was refused');
  expect(await site.explain('label/small')).toContain('the connection was refused');
  expect(await site.metrics(/provider_state.* 1$|nodepool_problems|nodepool_unfulfilled.* 1$/)).toEqual([
    'nodepool_problems{problem="provider",severity="critical"} 1',
    'nodepool_problems{problem="failed-requests",severity="warning"} 1',
    'nodepool_provider_state{provider="demo",state="unreachable"} 1',
    'nodepool_unfulfilled_requests{label="small",state="requested"} 1',
  ]);
  const [oldest] = await site.metrics(/oldest_unfulfilled.*small/);
  expect(Number(oldest?.split(' ')[1])).toBeGreaterThan(10);
  isAway = false;
  await world.inState(id, 'fulfilled');
  expect((await site.get<OverviewDocument>('overview')).problems.map(({ kind }) => kind)).toEqual(['failed-requests']);
});
