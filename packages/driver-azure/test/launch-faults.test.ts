/** Launches of VMs under faults. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { sleep } from '@nodepool/core';
import { VirtualClock } from '@nodepool/core/testing';
import { callOn, failureOf } from '@nodepool/driver-kit';
import { readAuth } from '../src/auth.js';
import { Arm } from '../src/client/arm.js';
import { Client } from '../src/client/client.js';
import { VMS, TestSite } from './test-site.js';

const site = new TestSite();

describe('a launch under faults', () => {
  it('can use a size that the location has got since the last list of sizes', async () => {
    site.cloud.configure({ missingSizes: ['Standard_B1ls'] });
    const test = await site.provider();
    expect((await test.failedLaunch()).message).toContain('no VM size');
    site.cloud.configure({ missingSizes: [] });
    await test.end(sleep(site.time.clock, 10_000));
    await test.launch();
    expect(site.cloud.list(VMS)).toHaveLength(1);
  });

  it('waits for a VM that Azure does not know yet after it accepted its creation', async () => {
    const test = await site.provider();
    const fault = { kind: 'status', status: 404, code: 'ResourceNotFound' } as const;
    site.cloud.faults.add({ on: 'virtualMachines.get', fault, times: 3 });
    const { externalId } = await test.launch();
    expect(site.cloud.list(VMS).map(({ name }) => name)).toEqual([externalId]);
    expect(site.cloud.calls.count('virtualMachines.put')).toBe(1);
  });

  it('finds its VM by name if the answer is lost', async () => {
    const test = await site.provider();
    site.cloud.faults.add({ on: 'virtualMachines.put', fault: { kind: 'cut', when: 'after' } });
    await test.launch();
    expect(site.cloud.list(VMS)).toHaveLength(1);
  });

  it('ends when Azure throttles the creation, and the next one waits for the time that it demands', async () => {
    const test = await site.provider();
    site.cloud.faults.add({
      on: 'virtualMachines.put',
      fault: { kind: 'status', status: 429, code: 'TooManyRequests', retryAfter: 30 },
    });
    const before = site.time.clock.monotonic();
    const failure = await test.failedLaunch();
    expect(failure).toMatchObject({ code: 'throttled', outcome: 'not-applied', retryAfterMs: 30_000 });
    await test.launch();
    expect(site.time.clock.monotonic() - before).toBeGreaterThanOrEqual(30_000);
  });

  it.each([
    ['virtualMachines.put', 409, 'RetryableError'],
    ['operations.get', 429, 'RetryableErrorDueToAnotherOperation'],
    ['virtualMachines.get', 500, 'InternalServerError'],
    ['networkInterfaces.get', 503, 'ServiceUnavailable'],
  ])('retries if the answer to %s is %d %s', async (on, status, code) => {
    const test = await site.provider();
    site.cloud.faults.add({ on, fault: { kind: 'status', status, code } });
    await test.launch();
    expect(site.cloud.list(VMS)).toHaveLength(1);
  });

  it('logs in again if its token is refused', async () => {
    const test = await site.provider();
    site.cloud.revokeTokens();
    await test.launch();
    expect(site.cloud.calls.count('login.token')).toBe(2);
  });

  it('reads the VM itself if Azure has deleted the operation', async () => {
    const test = await site.provider();
    const launch = test.begin();
    await site.time.until(() => site.cloud.list(VMS).length > 0, 60_000);
    site.cloud.forgetOperations();
    expect((await test.end(launch)).publicIpv4).toBeDefined();
  });

  it.each([
    ['AllocationFailed', 'We do not have sufficient capacity.', 'capacity'],
    ['OperationNotAllowed', 'It results in exceeding approved cores quota.', 'quota'],
    ['OSProvisioningTimedOut', 'OS Provisioning did not finish.', 'instance-failed'],
  ])('fails with the right kind if the accepted operation ends with %s', async (code, message, expected) => {
    const test = await site.provider();
    site.cloud.faults.failNextVm({ code, message });
    expect(await test.failedLaunch()).toMatchObject({ code: expected, outcome: 'applied' });
  });

  it('reports the reason of a failure although Azure has deleted the operation', async () => {
    const test = await site.provider();
    site.cloud.faults.failNextVm({ code: 'OSProvisioningTimedOut', message: 'OS provisioning did not finish' });
    const launch = test.begin();
    await site.time.until(() => site.cloud.list(VMS).length > 0, 60_000);
    site.cloud.forgetOperations();
    expect((await failureOf(test.end(launch))).message).toContain('OS provisioning did not finish');
  });

  it('fails with configuration in a zone that the location does not have', async () => {
    const test = await site.provider();
    expect((await test.failedLaunch('0000000001', { availabilityZone: '9' })).code).toBe('configuration');
  });

  it('logs in with a token file of Kubernetes', async () => {
    const auth = JSON.parse(readFileSync(site.cloud.authFile, 'utf8')) as Record<string, string>;
    const folder = mkdtempSync(join(tmpdir(), 'azure-token-'));
    const [authFile, federatedTokenFile] = [join(folder, 'auth.json'), join(folder, 'token')];
    const { clientSecret = '', ...rest } = auth;
    writeFileSync(federatedTokenFile, clientSecret);
    writeFileSync(authFile, JSON.stringify({ ...rest, authentication: 'workload-identity', federatedTokenFile }));
    const test = await site.provider({ 'auth-path': authFile });
    await test.launch();
    expect(site.cloud.list(VMS)).toHaveLength(1);
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['an invalid tenant', { tenantId: 'acme north' }],
    ['a token file that is missing', { authentication: 'workload-identity', federatedTokenFile: '/does/not/exist' }],
    ['a workload identity without a token file', { authentication: 'workload-identity' }],
  ])('is a configuration or login error with %s', async (_what, change) => {
    const auth = JSON.parse(readFileSync(site.cloud.authFile, 'utf8')) as Record<string, string>;
    const folder = mkdtempSync(join(tmpdir(), 'azure-auth-'));
    const authFile = join(folder, 'auth.json');
    writeFileSync(authFile, JSON.stringify({ ...auth, ...change }));
    const error = await failureOf(site.provider({ 'auth-path': authFile }));
    expect(['configuration', 'auth']).toContain(error.code);
    expect(error.message).not.toContain(auth['clientSecret']);
    rmSync(folder, { recursive: true });
  });

  it('fails with quota if the VM family of its size has no quota', async () => {
    site.cloud.setLimit('standardBSFamily', 0);
    const test = await site.provider();
    expect((await test.failedLaunch()).code).toBe('quota');
  });

  it('resumes the launch of another process, and creates nothing twice', async () => {
    const first = await site.provider();
    let saved: unknown;
    const launch = first.begin('0000000001', {
      save: async (progress) => {
        saved = progress.machine;
      },
    });
    launch.catch(() => undefined);
    await site.time.until(() => saved !== undefined, 60_000);
    await first.stop();
    const second = await site.provider();
    const [vm] = site.cloud.list(VMS);
    const launched = await second.launch('0000000001', { saved: saved as null, externalId: vm?.name ?? null });
    expect(launched.externalId).toBe(vm?.name);
    expect(site.cloud.calls.count('virtualMachines.put')).toBe(1);
  });

  it('resumes a launch of the Python Nodepool, which records no attempt and names the VM differently', async () => {
    const first = await site.provider();
    let name: unknown;
    const launch = first.begin('0000000001', {
      save: async ({ externalId }) => {
        name = externalId;
      },
    });
    launch.catch(() => undefined);
    await site.time.until(() => name !== undefined, 60_000);
    await first.stop();
    const second = await site.provider();
    const saved: unknown[] = [];
    const launched = await second.launch('0000000001', {
      externalId: name as string,
      tags: second.tagsOf('0000000001', 'new-attempt'),
      save: async ({ externalId }) => void saved.push(externalId),
    });
    expect([...new Set([...saved, launched.externalId])]).toEqual([name]);
    expect(site.cloud.calls.count('virtualMachines.put')).toBe(1);
  });
});

describe('a call that waits for the rate limit', () => {
  it('has its whole time for the answer, so that a long queue does not make all launches fail', async () => {
    const clock = new VirtualClock();
    const arm = new Arm({
      readAuth: () => readAuth(site.cloud.authFile),
      clock,
      callsPerSecond: 1 / 60,
      onApiCall: () => undefined,
    });
    const client = new Client(arm, { resourceGroup: 'nodepool', location: 'centralus' });
    const call = { ...callOn(clock), deadline: 10_000 };
    await client.deleteVm('first', call);
    const second = client.deleteVm('second', call);
    await clock.advance(60_000);
    await clock.advance(9000);
    expect(await second).toMatchObject({ nothing: true });
    arm.stop();
  });
});
