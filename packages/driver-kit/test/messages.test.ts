/** Failure messages name the driver's fault instead of its consequences. */

import { describe, expect, it } from '@jest/globals';
import { driverContract } from '../src/index.js';
import type { Changes } from './support/acme-driver.js';
import { acmeFixture } from './support/acme-fixture.js';
import { changed, deletions } from './support/changed-drivers.js';

async function messageOf(id: string, changes: Changes): Promise<string> {
  const found = driverContract(acmeFixture(changes)).find(({ rule }) => rule.id === id);
  const error: unknown = await found?.run().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof Error ? error.message : '';
}

describe('a deletion', () => {
  it('that neither ends nor makes a call is reported with the missing delete call', async () => {
    const changes = deletions((machine) => changed(machine, { advance: () => ({ next: 'listing' }) }));
    expect(await messageOf('life.delete', changes)).toMatch(
      /the deletion of node 0000000001 failed .*; no delete call reached the cloud; the remote calls were acme CALL list/,
    );
  });

  it('that ends without a call is reported with the remaining instance', async () => {
    const changes = deletions((machine) => changed(machine, { advance: () => ({ next: 'complete' }) }));
    expect(await messageOf('life.delete', changes)).toMatch(
      /no delete call reached the cloud, and something is left in the cloud: instance server-1/,
    );
  });
});

describe('a launch', () => {
  it('of a driver that throws a string is reported with the string', async () => {
    const changes: Changes = {
      adapter: (adapter) => ({
        getCreateStateMachine: (request, saved) => {
          const machine = adapter.getCreateStateMachine(request, saved);
          return changed(machine, {
            advance: () => {
              // eslint-disable-next-line @typescript-eslint/only-throw-error -- it is the defect
              throw '404 gone';
            },
          });
        },
      }),
    };
    expect(await messageOf('life.launch', changes)).toContain(
      'the driver threw a string instead of an error: 404 gone',
    );
  });
});
