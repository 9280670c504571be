/** The rule about the order of service, with several launchers that decide concurrently. */

import { expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import type { Observed, Seen } from '../src/observed.js';
import { prioritiesAreKept } from '../src/rules/order.js';
import type { Rule, CheckerView } from '../src/rules/rule.js';

const TENANT_LIMIT = 5;
/** Longer than a launcher can miss a change (ms). */
const LONG_MS = 60_000;

/** Records of one tenant and two launchers, and the rule, which checks every change. */
class Records {
  private readonly nodes = new Map<string, Seen>();
  private readonly requests = new Map<string, Seen>();
  private nowMs = 0;
  private readonly rule: Rule;

  constructor() {
    const pools = ['launcher-1', 'launcher-2'].map((hostname) => ({
      id: hostname,
      hostname,
      state: 'running',
      provider_name: 'alpha',
      name: 'main',
      priority: 100,
      supported_labels: ['small'],
    }));
    const observed: Partial<Observed> = { nodes: this.nodes, requests: this.requests, pools: () => pools };
    const view: Partial<CheckerView> = {
      observed: observed as Observed,
      now: () => this.nowMs,
      configuredAt: () => 0,
      tenantInstances: () => TENANT_LIMIT,
      shares: () => undefined,
    };
    this.rule = prioritiesAreKept(view as CheckerView);
  }

  pass(ms: number): void {
    this.nowMs += ms;
  }

  request(id: string, count: number): void {
    const node_types = Array.from({ length: count }, () => 'small');
    const data = { state: 'requested', node_types, tenant_name: 'bounded', provider: null, declined_by: [] };
    const after = seen(id, data);
    this.requests.set(id, after);
    this.rule.committed?.({ uploads: [], nodes: [], requests: [{ id, before: undefined, after, by: 'requestor' }] });
  }

  /** The launcher accepts the request in one transaction. Returns the violation. */
  accept(id: string, launcher: string): string | undefined {
    const before = this.requests.get(id);
    if (before === undefined) throw new Error(`no request ${id}`);
    const after = seen(id, { ...before.data, state: 'pending' }, launcher);
    this.requests.set(id, after);
    const labels = before.data['node_types'];
    const nodes = (Array.isArray(labels) ? labels : []).map(() => {
      const node = {
        state: 'init',
        tenant_name: 'bounded',
        allocated_to: id,
        provider: 'alpha',
        pool: 'main',
        launcher,
      };
      const made = seen(String(this.nodes.size), node);
      this.nodes.set(made.id, made);
      return { id: made.id, before: undefined, after: made, by: 'launcher' as const };
    });
    return this.rule.committed?.({ uploads: [], nodes, requests: [{ id, before, after, by: 'launcher' }] });
  }
}

function seen(id: string, data: JsonObject, holder?: string): Seen {
  return { id, data, text: JSON.stringify(data), holder, contender: holder, owner: 0n };
}

/** Four nodes fill the tenant's limit for the request of better priority, but not for the one of worse priority. */
function recordsOfTenant(): Records {
  const records = new Records();
  records.request('100-0000000001', 4);
  records.request('200-0000000002', 4);
  records.request('300-0000000003', 1);
  records.pass(LONG_MS);
  return records;
}

const PASSED = 'node 4 is launched for 300-0000000003, while 200-0000000002 waits for the tenant';

it('a launcher skips a request that waits for nodes which it launches itself', () => {
  const records = recordsOfTenant();
  expect(records.accept('100-0000000001', 'launcher-1')).toBeUndefined();
  records.pass(5);
  expect(records.accept('300-0000000003', 'launcher-1')).toBe(PASSED);
});

it('a launcher does not yet see nodes that another one has just launched', () => {
  const records = recordsOfTenant();
  expect(records.accept('100-0000000001', 'launcher-1')).toBeUndefined();
  records.pass(5);
  expect(records.accept('300-0000000003', 'launcher-2')).toBeUndefined();
});

it('a launcher sees nodes that another one launched some time ago', () => {
  const records = recordsOfTenant();
  expect(records.accept('100-0000000001', 'launcher-1')).toBeUndefined();
  records.pass(LONG_MS);
  expect(records.accept('300-0000000003', 'launcher-2')).toBe(PASSED);
});
