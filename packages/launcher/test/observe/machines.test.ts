/** Tests of the places that show machines out of service. */

import { describe, expect, it } from '@jest/globals';
import { silentMetrics, type Gauge } from '@nodepool/core';
import { DecisionLog } from '@nodepool/status';
import { explainLabel, explainRequest } from '@nodepool/status/web';
import { change, host, hostKeys, KEY, rack, start, untilReady, world } from '../support/static-world.js';

const REASON = 'port 22 of 192.0.2.1 accepted no connection';

describe('a machine that is out of service', () => {
  it('is in the registry, in explanations and in a metric, until it is in service again', async () => {
    const decisions = new DecisionLog({ clock: world.clock });
    const gauges = new Map<string, number | undefined>();
    const set = (gauge: Gauge, labels: Readonly<Record<string, string>>, value: number | undefined): void => {
      if (gauge.name === 'nodepool_machines') gauges.set(`${labels.provider}/${labels.pool} ${labels.state}`, value);
    };
    world.observation = { decisions, metrics: { ...silentMetrics, set } };
    hostKeys.set('192.0.2.1', []);
    const began = world.clock.now() / 1000;
    const launcher = await start(rack([host('192.0.2.1', ['small', 'other']), host('192.0.2.2', ['other'])]));
    await untilReady('192.0.2.2:22/0');
    const id = await world.submit(['small']);
    const pool = (): unknown => [...launcher.store.components.pools()][0]?.out_of_service;
    await world.until('it is published', () => pool() !== undefined);
    expect(pool()).toEqual([
      { machine: '192.0.2.1:22 (user zuul)', labels: ['small', 'other'], slots: 1, reason: REASON, since: expect.any(Number) },
    ]); // prettier-ignore
    expect(JSON.stringify(pool())).toContain(`"since":${began}`);
    expect([...gauges]).toEqual([
      ['rack/main in_service', 1],
      ['rack/main out_of_service', 1],
    ]);

    const sources = world.explanation(launcher, decisions);
    const label = explainLabel(sources, 'small');
    expect(label?.pools[0]?.says).toContain(`machine 192.0.2.1:22 (user zuul) is out of service: ${REASON}`);
    expect(label?.decisions).toMatchObject([
      { by: 'rack/main', decision: 'machine 192.0.2.1:22 (user zuul) is out of service', reason: REASON },
    ]);
    const request = explainRequest(sources, id);
    expect(request?.summary).toContain(
      'no node is ready for 1 of label small; all of them are in use or out of service',
    );
    expect(request?.pools[0]?.says).toContain(`machine 192.0.2.1:22 (user zuul) is out of service: ${REASON}`);

    hostKeys.set('192.0.2.1', [KEY]);
    await world.until('it is in service again', () => JSON.stringify(pool()) === '[]');
    expect([...gauges.values()]).toEqual([2, 0]);
    await change(launcher, { providers: new Map() });
    expect([...gauges.values()]).toEqual([undefined, undefined]);
  });
});
