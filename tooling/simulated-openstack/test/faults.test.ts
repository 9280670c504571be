/** The fault plan of the simulated OpenStack: failing calls, incorrect listings, and failing servers. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { seededRandom } from '@nodepool/core/testing';
import { TestBed, startSimulatedOpenStack, textOf, type ApiAnswer, type SimulatedOpenStack } from '../src/index.js';

let cloud: SimulatedOpenStack;
let bed: TestBed;

beforeEach(async () => {
  cloud = await startSimulatedOpenStack({ random: seededRandom(7) });
  bed = await TestBed.open(cloud.cloudsYaml);
  cloud.calls.reset();
});

afterEach(async () => {
  await cloud.close();
});

const idOf = (answer: ApiAnswer): string => textOf(answer.member('server')['id']);
const limits = (): Promise<ApiAnswer> => bed.demo.get('compute', '/limits');
const servers = async (): Promise<number> => (await bed.demo.get('compute', '/servers')).list('servers').length;

describe('calls', () => {
  it('are answered with the status and the Retry-After of the rule, as often as it demands', async () => {
    const fault = cloud.faults.add({
      on: 'compute.limits.show',
      times: 2,
      fault: { kind: 'status', status: 429, retryAfter: 3 },
    });

    const answers = [await limits(), await limits(), await limits()];

    expect(answers.map(({ status }) => status)).toEqual([429, 429, 200]);
    expect(answers[0]?.headers.get('retry-after')).toBe('3');
    expect(answers[0]?.json()).toHaveProperty('overLimit.code', 429);
    expect(fault.hits).toBe(2);
  });

  it.each([
    ['compute', '/limits', 'computeFault'],
    ['network', '/networks', 'NeutronError'],
    ['volume', '/limits', 'computeFault'],
    ['identity', '/auth/projects', 'error'],
  ] as const)('of the service %s fail with 500 in the form of the service', async (service, path, member) => {
    cloud.faults.add({ on: service, fault: { kind: 'status', status: 500 } });

    const answer = await bed.demo.get(service, path);

    expect(answer.status).toBe(500);
    expect(answer.json()).toHaveProperty(member);
  });

  it('succeed as often as the rule allows before they fail, and again after its removal', async () => {
    const fault = cloud.faults.add({ on: '*', after: 1, times: Infinity, fault: { kind: 'status', status: 503 } });

    expect([(await limits()).status, (await limits()).status]).toEqual([200, 503]);
    fault.remove();
    expect((await limits()).status).toBe(200);
  });

  it('fail with the probability of the rule', async () => {
    cloud.faults.add({
      on: (call) => call.project === 'demo',
      times: Infinity,
      probability: 0.5,
      fault: { kind: 'status', status: 502 },
    });

    const statuses: number[] = [];
    for (let call = 0; call < 40; call += 1) statuses.push((await limits()).status);

    expect(new Set(statuses)).toEqual(new Set([200, 502]));
  });

  it('take effect before or after the connection is cut, as the rule demands', async () => {
    cloud.faults.add({ on: 'compute.servers.create', fault: { kind: 'cut', when: 'before' } });
    await expect(bed.createServer('cut-before')).rejects.toThrow('fetch failed');
    expect(cloud.inspect.servers()).toEqual([]);

    cloud.faults.add({ on: 'compute.servers.create', fault: { kind: 'cut', when: 'after' } });
    await expect(bed.createServer('cut-after')).rejects.toThrow('fetch failed');
    expect(cloud.inspect.servers().map(({ name }) => name)).toEqual(['cut-after']);
  });

  it('take effect although the answer is an error of a proxy', async () => {
    const html = '<html>bad gateway</html>';
    cloud.faults.add({
      on: 'compute.servers.create',
      fault: { kind: 'status', status: 502, when: 'after', body: html },
    });

    const answer = await bed.createServer('made');

    expect([answer.status, answer.text]).toEqual([502, html]);
    expect(cloud.inspect.servers()).toHaveLength(1);
  });

  it('can break off in the middle of the answer', async () => {
    cloud.faults.add({ on: 'compute.limits.show', fault: { kind: 'cut', when: 'during' } });

    await expect(limits()).rejects.toThrow('terminated');
  });

  it.each(['before', 'after'] as const)('can hang %s their effect until the caller aborts', async (when) => {
    cloud.faults.add({ on: 'compute.servers.create', fault: { kind: 'hang', when } });
    const givenUp = new AbortController();
    const asked = fetch(`${bed.demo.endpoint('compute')}/servers`, {
      method: 'POST',
      signal: givenUp.signal,
      headers: { 'X-Auth-Token': bed.demo.token, 'Content-Type': 'application/json' },
      body: JSON.stringify({
        server: { name: 'hangs', flavorRef: bed.flavorId('m1.tiny'), imageRef: bed.imageId },
      }),
    });
    // The next call proves that the first one was processed: it has a separate connection and was sent later.
    while (cloud.calls.count('compute.servers.create') === 0) await limits();
    await limits();
    givenUp.abort();

    await expect(asked).rejects.toThrow('aborted');
    expect(cloud.inspect.servers()).toHaveLength(when === 'after' ? 1 : 0);
  });

  it('are refused with 401 after the revocation of all tokens, until the caller logs in again', async () => {
    cloud.faults.revokeTokens();

    expect((await limits()).status).toBe(401);
    expect((await bed.demo.post('identity', '/auth/tokens', bed.demo.credentials)).status).toBe(201);
  });

  it('are counted by operation, by service and in total', async () => {
    await limits();
    await limits();
    await bed.demo.get('network', '/ports');
    await bed.demo.get('image', '/nowhere');

    expect(cloud.calls.byOperation()).toEqual({
      'compute.limits.show': 2,
      'image.unknown': 1,
      'network.ports.list': 1,
    });
    expect([cloud.calls.count(), cloud.calls.count('compute')]).toEqual([4, 2]);
    expect(cloud.calls.last(1)).toEqual([
      { service: 'image', operation: 'image.unknown', method: 'GET', path: '/v2/nowhere', project: 'demo' },
    ]);
  });
});

describe('listings', () => {
  it('lack new servers and contain deleted ones while they lag', async () => {
    const id = idOf(await bed.createServer('lags'));
    const lag = cloud.faults.add({
      on: 'compute.servers.list',
      times: Infinity,
      fault: { kind: 'lag', lacksNewestMs: 60_000 },
    });
    expect(await servers()).toBe(0);
    lag.remove();
    expect(await servers()).toBe(1);

    await bed.removeServer(id);
    cloud.faults.add({
      on: 'compute.servers.list',
      times: Infinity,
      fault: { kind: 'lag', showsDeletedMs: 60_000 },
    });
    expect(await servers()).toBe(1);
    expect((await bed.demo.get('compute', `/servers/${id}`)).status).toBe(404);
  });

  it('can be truncated without a link to the next page', async () => {
    for (const name of ['a', 'b', 'c']) await bed.createServer(name);
    cloud.configure({ pageLimit: 2 });
    expect((await bed.demo.get('compute', '/servers')).json()).toHaveProperty('servers_links');

    cloud.faults.add({ on: 'compute.servers.list', fault: { kind: 'truncate', to: 1 } });
    const answer = await bed.demo.get('compute', '/servers');

    expect(answer.list('servers')).toHaveLength(1);
    expect(answer.json()).not.toHaveProperty('servers_links');
  });
});

describe('servers', () => {
  it('enter ERROR with the message of the rule if they match it, as often as it demands', async () => {
    cloud.faults.nextServers({
      times: 2,
      where: ({ name }) => name.startsWith('bad'),
      behaviour: { boot: 'error', message: 'Quota exceeded for {id}', code: 403 },
    });

    const states = [];
    for (const name of ['bad-1', 'good', 'bad-2', 'bad-3']) states.push((await bed.server(name))['status']);

    expect(states).toEqual(['ERROR', 'ACTIVE', 'ERROR', 'ACTIVE']);
    const [first] = cloud.inspect.servers();
    expect(first?.fault).toBe(`Quota exceeded for ${first?.id ?? ''}`);
  });

  it('can refuse their deletion with a conflict or by entering ERROR, or never be deleted', async () => {
    cloud.faults.nextServers({ behaviour: { delete: 'conflict', times: 2 } });
    const busy = textOf((await bed.server('busy'))['id']);
    cloud.faults.nextServers({ behaviour: { delete: 'error' } });
    const failing = textOf((await bed.server('failing'))['id']);
    cloud.faults.nextServers({ behaviour: { delete: 'never' } });
    const eternal = textOf((await bed.server('eternal'))['id']);
    const remove = async (id: string): Promise<number> => (await bed.demo.delete('compute', `/servers/${id}`)).status;

    expect([await remove(busy), await remove(busy), await remove(busy)]).toEqual([409, 409, 204]);
    await bed.gone('compute', `/servers/${busy}`);
    await remove(failing);
    await bed.demo.until('compute', `/servers/${failing}`, ({ text }) => text.includes('"ERROR"'));
    await remove(failing);
    await bed.gone('compute', `/servers/${failing}`);
    expect([await remove(eternal), await remove(eternal)]).toEqual([204, 204]);
    expect(cloud.inspect.servers()).toMatchObject([{ id: eternal, status: 'ACTIVE', taskState: 'deleting' }]);
  });

  it('can fail and disappear without a call', async () => {
    const id = textOf((await bed.server('struck'))['id']);

    expect(cloud.faults.breakServer(id, 'the host is gone')).toBe(true);
    expect(cloud.inspect.servers()).toMatchObject([{ status: 'ERROR', fault: 'the host is gone' }]);
    expect(cloud.faults.removeServer(id)).toBe(true);
    expect(cloud.faults.removeServer(id)).toBe(false);
    expect(cloud.inspect.leftovers()).toMatchObject({ servers: 0, ports: 0 });
  });
});

describe('quotas', () => {
  it('can be reduced below their use, and are reported and enforced', async () => {
    await bed.server('first', { client: bed.limited });
    cloud.quota('limited').set({ instances: 1 });

    const answer = await bed.createServer('second', { client: bed.limited });

    expect(answer.status).toBe(403);
    expect((await bed.limited.get('compute', '/limits')).text).toContain('"maxTotalInstances":1,');
  });

  it('can be reported as larger than they are', async () => {
    cloud.quota('limited').report({ instances: -1, cores: -1 });

    expect((await bed.limited.get('compute', '/limits')).text).toContain('"maxTotalInstances":-1,');
    const many = { client: bed.limited, more: { min_count: 4, max_count: 4 } };
    expect((await bed.createServer('many', many)).status).toBe(403);
  });

  it('belong to existing projects', () => {
    expect(() => cloud.quota('nobody')).toThrow('there is no project nobody; projects: admin, demo, limited');
  });
});
