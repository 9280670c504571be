/** Deletions of VMs, and of resources without a record. */

import { describe, expect, it } from '@jest/globals';
import { ADDRESSES, DISKS, NICS, VMS, TestSite } from './test-site.js';

const site = new TestSite();

describe('a deletion', () => {
  it('deletes everything that was created with the VM', async () => {
    const test = await site.provider();
    const { externalId } = await test.launch();
    await test.cleanUp(externalId);
    expect(site.everything()).toEqual([]);
  });

  it('is reported if Azure does not complete it', async () => {
    const test = await site.provider();
    const { externalId } = await test.launch();
    site.cloud.configure({ deleteMs: 200_000 });
    const reported: string[] = [];
    await test.cleanUp(externalId, undefined, { onWaiting: (reason) => void reported.push(reason) });
    expect(reported).toEqual([
      expect.stringMatching(/^Azure has accepted the deletion of VM np\S+, and its operation/),
    ]);
    expect(site.cloud.calls.count('virtualMachines.delete')).toBe(1);
  });

  it('succeeds for a nonexistent VM', async () => {
    const test = await site.provider();
    await test.cleanUp('np-never-was');
    expect(site.cloud.calls.count('virtualMachines.delete')).toBe(1);
  });

  it('deletes the VM in its resource group after that of the provider was changed', async () => {
    const { externalId } = await (await site.provider()).launch();
    const changed = await site.provider({ 'resource-group': 'other' });
    await changed.cleanUp(externalId);
    expect(site.everything()).toEqual([]);
  });

  it('keeps a VM of the same name in another resource group that is of another launch attempt', async () => {
    const { externalId } = await (await site.provider()).launch();
    const [vm] = site.cloud.list(VMS);
    if (vm !== undefined) vm.tags = { ...vm.tags, nodepool_launch_attempt: 'another' };
    const changed = await site.provider({ 'resource-group': 'other' });
    await changed.cleanUp(externalId);
    expect(site.cloud.list(VMS)).toHaveLength(1);
  });

  it('is repeated if the VM still exists after Azure accepted it', async () => {
    const test = await site.provider();
    const { externalId } = await test.launch();
    const fault = { kind: 'status', status: 202, code: 'Accepted' } as const;
    site.cloud.faults.add({ on: 'virtualMachines.delete', fault });
    await test.cleanUp(externalId);
    expect(site.cloud.calls.count('virtualMachines.delete')).toBe(2);
    expect(site.everything()).toEqual([]);
  });

  it('succeeds after a lost answer and an error', async () => {
    const test = await site.provider();
    const { externalId } = await test.launch();
    site.cloud.faults.add({
      on: 'virtualMachines.delete',
      fault: { kind: 'status', status: 500, code: 'InternalServerError' },
    });
    site.cloud.faults.add({ on: 'virtualMachines.delete', after: 1, fault: { kind: 'cut', when: 'after' } });
    await test.cleanUp(externalId);
    expect(site.everything()).toEqual([]);
  });
});

describe('a hundred concurrent nodes', () => {
  it('are created and deleted with at most twelve calls each, and leave no resources', async () => {
    const test = await site.provider();
    site.cloud.calls.reset();
    const ids = Array.from({ length: 100 }, (_, index) => String(index + 1).padStart(10, '0'));
    const nodes = await test.end(Promise.all(ids.map((id) => test.begin(id))));
    expect(new Set(nodes.map(({ publicIpv4 }) => publicIpv4)).size).toBe(100);
    await test.end(Promise.all(nodes.map(({ externalId }, index) => test.beginCleanUp(externalId, ids[index]))));
    expect(site.everything()).toEqual([]);
    expect(site.cloud.calls.count() / 100).toBeLessThanOrEqual(12);
  });
});

describe('leaked resources', () => {
  it('are found by their tags and deleted in an order that Azure accepts', async () => {
    const test = await site.provider();
    await test.launch();
    const [vm] = site.cloud.list(VMS);
    if (vm !== undefined) site.cloud.remove(vm);
    // The VM's resources still exist; the address is in use by the interface.
    expect(site.everything().map(({ type }) => type)).toEqual([NICS, ADDRESSES, DISKS]);
    await test.cleanUpRound(() => true);
    expect(site.everything()).toEqual([]);
  });

  it('are found on all pages of the lists, also after an empty page', async () => {
    site.cloud.configure({ pageLimit: 1, emptyPages: true });
    const test = await site.provider();
    for (const id of ['0000000001', '0000000002']) await test.launch(id);
    expect(await test.end(test.provider.listNodes(test.call()))).toHaveLength(2);
    await test.cleanUpRound(() => true);
    expect(site.everything()).toEqual([]);
  });

  it('are not reported if they belong to other owners', async () => {
    site.cloud.disks.addImage('nodepool', 'of-others', 'centralus', {});
    site.cloud.machines.addForeign('other');
    const test = await site.provider();
    expect(await test.cleanUpRound(() => true)).toEqual([]);
    expect(site.cloud.list(VMS)).toHaveLength(1);
  });
});
