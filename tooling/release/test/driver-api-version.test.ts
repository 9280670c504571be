/** A version of the driver API never breaks the drivers that were written for it. */

import { describe, expect, it } from '@jest/globals';
import { breakingChanges, driverApiMembers, recordedDriverApi } from '../src/driver-api.js';
import { readWorkspace, workspaceRoot } from '../src/workspace.js';

describe('the driver API', () => {
  it('has the recorded members, which `pnpm run names` writes', async () => {
    const workspace = await readWorkspace(workspaceRoot());

    const members = await driverApiMembers(workspace);

    expect(members).toContain('Driver.readonly name: string');
    expect(members).toEqual(await recordedDriverApi(workspace));
  });
});

describe('a change', () => {
  const recorded = [
    'Adapter.deleteServer(id: string): void',
    'Call.readonly signal: AbortSignal',
    'Driver.readonly name: string',
  ];

  it.each([
    ['an optional member of a driver', 'Adapter.listZones?(): string[]'],
    ['an optional property of a driver', 'Driver.readonly title?: string'],
    ['a member that the launcher provides', 'Call.readonly deadline: number'],
    ['a new interface', 'ZoneList.zones(): string[]'],
  ])('is compatible: %s', (_what, member) => {
    expect(breakingChanges(recorded, [...recorded, member])).toEqual([]);
  });

  it.each([
    ['a member that present drivers lack', [...recorded, 'Adapter.listZones(): string[]'], /not optional.*listZones/],
    ['a removed member', recorded.slice(0, 2), /removed or changed: Driver\.readonly name/],
    [
      'a changed type',
      [...recorded.slice(0, 2), 'Driver.readonly name: symbol'],
      /removed or changed: Driver\.readonly name/,
    ],
  ])('breaks drivers: %s', (_what, present, problem) => {
    expect(breakingChanges(recorded, present)).toEqual(expect.arrayContaining([expect.stringMatching(problem)]));
  });
});
