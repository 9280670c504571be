import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DRIVER_API, isJsonObject, objectAt, stringAt, type JsonObject } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { RuleGroup } from '../rule.js';
import type { RuleContext } from '../rule-context.js';

const CORE = '@nodepool/core';

export const packages: RuleGroup = {
  title: 'The package',
  text: 'Also for drivers that create no instances.',
  rules: [
    {
      id: 'package.named',
      since: '1.0',
      title: 'package.json contains the driver’s name and API version',
      text:
        'It contains `"nodepool": {"driver": "<name>", "api": <integer>}`, or `"drivers": {"<name>": "<export>"}` ' +
        'for a package with several drivers. Programs find installed drivers by it. They reject a driver for ' +
        'another API version and print the command that installs a suitable one. The name is that of the exported ' +
        'driver.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const manifest = await manifestOf(context);
        const { cloud } = await context.open();
        const nodepool = objectAt(manifest, 'nodepool') ?? {};
        const { name } = cloud.makeDriver();
        const several = objectAt(nodepool, 'drivers');
        if (several === undefined) {
          expectEqual(nodepool, { driver: name, api: DRIVER_API }, 'the field `nodepool` of package.json');
          return;
        }
        expectEqual(nodepool, { drivers: several, api: DRIVER_API }, 'the field `nodepool` of package.json');
        assert.ok(stringAt(several, name) !== undefined, `"drivers" in package.json has no export for ${name}`);
      },
    },
    {
      id: 'package.peer',
      since: '1.0',
      title: '`@nodepool/core` is a peer dependency, not a dependency',
      text:
        'A dependency could be installed a second time. Two copies in one process do not recognize each other’s ' +
        'types and errors, and one of them has an untested version.',
      appliesTo: 'all',
      check: async (context: RuleContext): Promise<void> => {
        const manifest = await manifestOf(context);
        const range = stringAt(objectAt(manifest, 'peerDependencies') ?? {}, CORE);
        assert.ok(range !== undefined, `package.json has no ${CORE} among its peerDependencies`);
        assert.ok(
          !(CORE in (objectAt(manifest, 'dependencies') ?? {})),
          `package.json has ${CORE} among its dependencies`,
        );
      },
    },
  ],
};

async function manifestOf(context: RuleContext): Promise<JsonObject> {
  const file = join(context.fixture.packageFolder, 'package.json');
  const manifest: unknown = JSON.parse(await readFile(file, 'utf8'));
  assert.ok(isJsonObject(manifest), `${file} is not a JSON object`);
  return manifest;
}
