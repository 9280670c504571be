/** Deletions complete only when the cloud has confirmed that the server no longer exists. */

import { afterEach, describe, expect, it } from '@jest/globals';
import { openCloud, section, type OpenCloud } from './cloud.js';
import { closeAndCheck, TestProvider } from './provider.js';

let open: OpenCloud;
let test: TestProvider;

async function launched(pool = {}): Promise<string> {
  open = await openCloud();
  test = await TestProvider.started(open, section({}, {}, pool));
  const { externalId } = await test.launch();
  if (typeof externalId !== 'string') throw new TypeError('ids are texts');
  return externalId;
}

afterEach(() => closeAndCheck(open, test));

describe('a deletion', () => {
  it('completes when the cloud answers 404 for the server itself', async () => {
    const id = await launched();
    open.cloud.configure({ deleteMs: 30_000 });
    await test.cleanUp(id);
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 0, ports: 0 });
    expect(test.apiCalls.at(-1)).toMatchObject({ operation: 'server', method: 'GET', status: 404 });
  });

  it('reports what nova shows of a server that stays in task state deleting', async () => {
    const id = await launched();
    open.cloud.configure({ deleteMs: 300_000 });
    const reported: string[] = [];
    await test.cleanUp(id, undefined, { onWaiting: (reason) => void reported.push(reason) });
    expect(reported).toEqual(['nova has accepted the deletion; the server is ACTIVE, task state deleting']);
    expect(test.count('server', 'DELETE')).toBe(1);
  });

  it('succeeds for a nonexistent server', async () => {
    const id = await launched();
    open.cloud.faults.removeServer(id);
    await test.cleanUp(id);
    expect(test.count('server', 'DELETE')).toBe(1);
  });

  it('is repeated if the server enters ERROR', async () => {
    open = await openCloud();
    test = await TestProvider.started(open);
    open.cloud.faults.nextServers({ behaviour: { delete: 'error', times: 2 } });
    const { externalId } = await test.launch();
    await test.cleanUp(externalId);
    expect(open.cloud.inspect.servers()).toEqual([]);
    expect(test.count('server', 'DELETE')).toBe(3);
  });

  it('is repeated if the cloud refuses it because the server is busy', async () => {
    open = await openCloud();
    test = await TestProvider.started(open);
    open.cloud.faults.nextServers({ behaviour: { delete: 'conflict', times: 3 } });
    const { externalId } = await test.launch();
    await test.cleanUp(externalId);
    expect(open.cloud.inspect.servers()).toEqual([]);
  });

  it('does not complete because a list lacks the server', async () => {
    const id = await launched();
    open.cloud.configure({ deleteMs: 60_000 });
    open.cloud.faults.add({ on: 'compute.servers.list-detail', times: 3, fault: { kind: 'truncate', to: 0 } });
    let over = false;
    const deletion = test.beginCleanUp(id).then(() => {
      over = true;
    });
    await open.time.until(() => test.count('server', 'GET') > 0, 30_000);
    expect(over).toBe(false);
    await test.end(deletion);
    expect(open.cloud.inspect.servers()).toEqual([]);
  });

  it('does not complete because the identity service answers 404, which it does for unknown credentials', async () => {
    const id = await launched();
    open.cloud.faults.revokeTokens();
    open.cloud.faults.add({ on: 'identity.tokens.create', fault: { kind: 'status', status: 404 } });
    await expect(test.cleanUp(id)).rejects.toMatchObject({ code: 'auth', outcome: 'not-applied' });
    expect(open.cloud.inspect.servers()).toHaveLength(1);
    await test.cleanUp(id);
    expect(open.cloud.inspect.servers()).toEqual([]);
  });

  it('does not complete because the compute service does not know the path of the catalog', async () => {
    const id = await launched();
    const body = '<html><head><title>404 Not Found</title></head><body>The resource could not be found.</body></html>';
    open.cloud.faults.add({ on: 'compute.servers.delete', times: 3, fault: { kind: 'status', status: 404, body } });
    await test.cleanUp(id);
    expect(test.count('server', 'DELETE')).toBe(4);
    expect(open.cloud.inspect.servers()).toEqual([]);
  });

  it('does not complete because the network service answers 404, which it does without floating IPs', async () => {
    const id = await launched({ 'auto-floating-ip': true });
    const body = '{"message": "The resource could not be found.<br /><br />", "code": "404 Not Found"}';
    const fault = { kind: 'status', status: 404, body } as const;
    open.cloud.faults.add({ on: 'network.floating-ips.list', times: Infinity, fault });
    await test.cleanUp(id);
    expect(open.cloud.inspect.servers()).toEqual([]);
  });

  it('continues after the floating IP was deleted and the answer was lost', async () => {
    const id = await launched({ 'auto-floating-ip': true });
    open.cloud.faults.add({ on: 'network.floating-ips.delete', fault: { kind: 'cut', when: 'after' } });
    await test.cleanUp(id);
    expect(open.cloud.inspect.leftovers()).toMatchObject({ servers: 0, floatingIps: 0 });
  });

  it('succeeds although the cloud fails for a while', async () => {
    const id = await launched();
    open.cloud.faults.add({
      on: 'compute',
      times: 15,
      fault: { kind: 'status', status: 502, body: '<html><body><h1>502 Bad Gateway</h1></body></html>' },
    });
    await test.cleanUp(id);
    expect(open.cloud.inspect.servers()).toEqual([]);
  });
});
