/** Tests of the order of fair shares as a pure function. */

import { describe, expect, it } from '@jest/globals';
import { requestWith } from '@nodepool/core/testing';
import type { NodeRequest } from '@nodepool/core';
import { fairOrder, type OrderFacts, type Standing } from '../src/fairness/fair-order.js';

const standing = (used: number, weight = 1): Standing => ({ used, weight, entitled: weight / 4 });

/** Facts of these tenants; projects have used nothing unless listed. */
function facts(tenants: Readonly<Record<string, Standing>>, more: Partial<OrderFacts> = {}): OrderFacts {
  return {
    tenant: (tenant) => tenants[tenant ?? ''] ?? standing(0),
    project: () => standing(0),
    senior: () => undefined,
    perNode: 0.01,
    ...more,
  };
}

const of = (tenant: string | null, id: string, project?: string): NodeRequest =>
  requestWith({
    id,
    tenant_name: tenant,
    node_types: ['small'],
    requestor_data: project === undefined ? null : { project },
  });

const idsOf = (requests: readonly NodeRequest[], given: OrderFacts): string[] =>
  fairOrder(requests, given).map(({ request }) => request.id);

describe('the order of fair shares', () => {
  it('gives the next node to the tenant furthest below its share', () => {
    const requests = [of('a', '100-0000000001'), of('b', '300-0000000002'), of('c', '200-0000000003')];
    const places = fairOrder(requests, facts({ a: standing(0.3), b: standing(0.12), c: standing(0.5, 3) }));
    expect(places.map(({ reason }) => reason)).toEqual([
      '1st: tenant b has 12 % of 25 %',
      '2nd: tenant c has 50 % of 75 %',
      '3rd: tenant a has 30 % of 25 %',
    ]);
  });

  it('alternates between equal tenants, whatever the lengths of their queues', () => {
    const long = Array.from({ length: 5 }, (_, index) => of('a', `200-000000000${index}`));
    const requests = [...long, of('b', '200-0000000008'), of('b', '200-0000000009')];
    const given = facts({});
    expect(fairOrder(requests, given).map(({ request }) => request.tenant_name)).toEqual([
      ...['a', 'b', 'a', 'b', 'a', 'a', 'a'],
    ]);
  });

  it('orders requests of a tenant by priority, then by the use of their projects', () => {
    const requests = [
      of('a', '200-0000000001', 'busy'),
      of('a', '200-0000000002', 'calm'),
      of('a', '100-0000000003', 'busy'),
    ];
    const project = (_: string | null, name: string | null): Standing => standing(name === 'busy' ? 0.1 : 0);
    expect(idsOf(requests, facts({}, { project }))).toEqual(['100-0000000003', '200-0000000002', '200-0000000001']);
  });

  it('serves a request that starves first', () => {
    const starving = of('a', '300-0000000009');
    const senior = ({ id }: NodeRequest): number | undefined => (id === starving.id ? 5 : undefined);
    const places = fairOrder([of('b', '100-0000000001'), starving], facts({ a: standing(0.9) }, { senior }));
    expect(places[0]?.reason).toBe('1st: tenant a has 90 % of 25 %, and its request has waited too long');
  });

  it('serves a request that starves after those of its tenant with a better priority', () => {
    const [starving, urgent] = [of('a', '300-0000000009'), of('a', '200-0000000010')];
    const senior = ({ id }: NodeRequest): number | undefined => (id === starving.id ? 5 : undefined);
    const requests = [of('b', '100-0000000001'), starving, urgent];
    const ordered = idsOf(requests, facts({ a: standing(0.9), b: standing(0.1) }, { senior }));
    expect(ordered).toEqual(['100-0000000001', urgent.id, starving.id]);
  });

  it('names requests without a tenant', () => {
    expect(fairOrder([of(null, '200-0000000001')], facts({}))[0]?.reason).toBe(
      '1st: the group without a tenant has 0 % of 25 %',
    );
  });
});
