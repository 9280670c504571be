/** Drivers are found in all places of an installation; errors of unusable drivers name the cause and the remedy. */

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  defaultDriverFolders,
  discoverDriver,
  DriverLoadError,
  listInstalledDrivers,
  type DriverSearch,
} from '@nodepool/config';
import { DRIVER_API } from '@nodepool/core';
import { loadDriver } from '../../src/discovery/discovery.js';
import { DRIVER_BODY, Site } from './site.js';

let site: Site;

beforeEach(() => {
  site = new Site();
});

afterEach(() => site.remove());

async function failure(name: string, search: DriverSearch = site.search()): Promise<DriverLoadError> {
  const error: unknown = await loadDriver(name, search).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof DriverLoadError) return error;
  throw new Error(`not a DriverLoadError: ${String(error)}`);
}

describe('the name of a driver', () => {
  it('can be its short name', async () => {
    site.driver('node_modules/@nodepool/driver-x', '@nodepool/driver-x', 'x');
    expect((await discoverDriver('x', site.search())).name).toBe('x');
  });

  it('can be its package with a scope', async () => {
    site.driver('node_modules/@acme/nodepool-x', '@acme/nodepool-x', 'x');
    expect((await discoverDriver('@acme/nodepool-x', site.search())).name).toBe('x');
  });

  it('can be a path relative to the folder of the configuration', async () => {
    const folder = site.driver('drivers/mine', 'mine', 'x');
    expect((await discoverDriver('../drivers/mine', site.search())).name).toBe('x');
    expect((await discoverDriver(folder, site.search())).name).toBe('x');
  });

  it('can be a short name that the configuration maps to a package or a path, which takes precedence', async () => {
    site.driver('node_modules/@nodepool/driver-x', '@nodepool/driver-x', 'usual');
    site.driver('node_modules/plain-package', 'plain-package', 'other');
    site.driver('etc/y', 'y', 'path');
    const aliases = new Map([
      ['x', 'plain-package'],
      ['y', './y'],
    ]);
    expect((await discoverDriver('x', site.search({ aliases }))).name).toBe('other');
    expect((await discoverDriver('y', site.search({ aliases }))).name).toBe('path');
  });

  it.each(['a/b', '../', '', 'x y', '@scope', 'node:fs', '@a/../../b'])('cannot be %j', async (name) => {
    expect(['not-installed', 'not-a-driver']).toContain((await failure(name)).reason);
  });
});

describe('the search for a driver', () => {
  it('returns the first folder that contains it', async () => {
    site.driver('one/node_modules/@nodepool/driver-x', '@nodepool/driver-x', 'first');
    site.driver('two/node_modules/@nodepool/driver-x', '@nodepool/driver-x', 'second');
    const folders = ['none', 'two', 'one'].map((each) => join(site.path, each));
    expect((await loadDriver('x', site.search({ folders }))).driver.name).toBe('second');
  });

  it('includes parent folders, as in Node.js, and follows links', async () => {
    site.driver('store/driver-x', '@nodepool/driver-x', 'x');
    site.link('node_modules/@nodepool/driver-x', 'store/driver-x');
    const folders = [join(site.path, 'deep', 'down', 'there')];
    const loaded = await loadDriver('x', site.search({ folders }));
    expect(loaded).toMatchObject({
      name: 'x',
      package: '@nodepool/driver-x',
      version: '1.2.3',
      api: 1,
      folder: join(site.path, 'store', 'driver-x'),
      warnings: [],
    });
  });

  it('starts beside the program, continues in the working directory, then beside the configuration', () => {
    const folders = defaultDriverFolders('/etc/nodepool');
    expect(folders.slice(-2)).toEqual([process.cwd(), '/etc/nodepool']);
  });
});

describe('a driver package', () => {
  it.each([
    ['driver', `exports.driver = ${DRIVER_BODY}`],
    ['default', `exports.default = ${DRIVER_BODY}; exports.other = {}`],
    ['module.exports', `module.exports = ${DRIVER_BODY}`],
  ])('can export the driver as %s', async (_what, code) => {
    const manifest = { name: 'p', nodepool: { driver: 'NAME', api: 1 } };
    site.package('etc/p', manifest, 'index.js', code);
    expect((await discoverDriver('./p', site.search())).name).toBe('NAME');
  });

  it('is loaded according to its `exports`, from its sources under that condition', async () => {
    const manifest = {
      name: '@acme/source',
      nodepool: { driver: 'source', api: 1 },
      exports: { '.': { '@nodepool/source': './src/index.ts', default: './dist/index.js' } },
    };
    const code = `export const driver: { name: string } = ${DRIVER_BODY.replace('NAME', 'source')};`;
    site.package('packages/source', manifest, 'src/index.ts', code);
    site.link('node_modules/@acme/source', 'packages/source');
    expect((await discoverDriver('@acme/source', site.search())).name).toBe('source');
  });
});

describe('a package with several drivers', () => {
  const manifest = { name: '@acme/two', nodepool: { drivers: { one: 'driverOne', two: 'driverTwo' }, api: 1 } };
  const code = `exports.driverOne = ${DRIVER_BODY.replace('NAME', 'one')};
    exports.driverTwo = ${DRIVER_BODY.replace('NAME', 'two')};`;
  const ofKubernetes = {
    name: '@nodepool/driver-kubernetes',
    nodepool: { drivers: { kubernetes: 'driverOne', openshift: 'driverTwo' }, api: 1 },
  };
  const codeOfKubernetes = code.replace("'one'", "'kubernetes'").replace("'two'", "'openshift'");

  it('is available with each driver under the name that the configuration gives to the package', async () => {
    site.package('node_modules/@acme/two', manifest, 'index.js', code);
    const aliases = new Map([
      ['one', '@acme/two'],
      ['two', '../node_modules/@acme/two'],
    ]);
    const one = await loadDriver('one', site.search({ aliases }));
    const two = await loadDriver('two', site.search({ aliases }));
    expect([one.name, one.driver.name, two.name, two.driver.name]).toEqual(['one', 'one', 'two', 'two']);
    expect((await loadDriver('one', site.search({ aliases }))).driver).toBe(one.driver);
  });

  it('is found by the short names of its drivers without an entry in the configuration', async () => {
    site.package('node_modules/@nodepool/driver-kubernetes', ofKubernetes, 'index.js', codeOfKubernetes);
    expect((await discoverDriver('kubernetes', site.search())).name).toBe('kubernetes');
    expect((await discoverDriver('openshift', site.search())).name).toBe('openshift');
    expect((await failure('openshft')).remedy).toContain('did you mean "openshift"?');
    expect((await failure('openshiftpods')).message).toMatch(/has the drivers kubernetes, openshift, .*did you mean/);
  });

  it('that is not installed is reported with the command that installs it', async () => {
    expect((await failure('openshift')).remedy).toBe('run: npm install @nodepool/driver-kubernetes');
  });

  it('cannot be named by the package alone, because that selects no driver', async () => {
    site.package('node_modules/@acme/two', manifest, 'index.js', code);
    const error = await failure('@acme/two');
    expect(error.reason).toBe('not-a-driver');
    expect(error.message).toContain('has the drivers one, two');
  });

  it('exports each driver under the declared name', async () => {
    site.package('node_modules/@acme/two', manifest, 'index.js', code.replace('driverTwo', 'driver'));
    const aliases = new Map([['two', '@acme/two']]);
    const error = await failure('two', site.search({ aliases }));
    expect(error).toMatchObject({ reason: 'not-a-driver', message: expect.stringContaining('`driverTwo`') });
  });

  it('is rejected if it exports a driver under the name of another one', async () => {
    site.package('node_modules/@acme/two', manifest, 'index.js', code.replace("'two'", "'one'"));
    const error = await failure('two', site.search({ aliases: new Map([['two', '@acme/two']]) }));
    expect(error).toMatchObject({ reason: 'broken', message: expect.stringContaining('exports the driver one') });
  });

  it('is listed once for each of its drivers', async () => {
    site.package('node_modules/@nodepool/driver-kubernetes', ofKubernetes, 'index.js', codeOfKubernetes);
    site.package('node_modules/@acme/two', manifest, 'index.js', code);
    const list = await listInstalledDrivers(site.search({ aliases: new Map([['one', '@acme/two']]) }));
    expect(list.map(({ name, package: from, error, configNames }) => [name, from, error, configNames])).toEqual([
      ['kubernetes', '@nodepool/driver-kubernetes', undefined, ['kubernetes']],
      ['one', '@acme/two', undefined, ['one']],
      ['openshift', '@nodepool/driver-kubernetes', undefined, ['openshift']],
      ['two', '@acme/two', undefined, []],
    ]);
  });
});

describe('an unusable driver', () => {
  it('that is not installed is reported with the command that installs it', async () => {
    const error = await failure('x');
    expect(error).toMatchObject({
      reason: 'not-installed',
      driver: 'x',
      remedy: 'run: npm install @nodepool/driver-x',
    });
    expect(error.message).toContain(site.path);
  });

  it('with a misspelt name is reported with a suggestion', async () => {
    site.driver('node_modules/@nodepool/driver-example', '@nodepool/driver-example', 'example');
    site.driver('node_modules/@acme/rack', '@acme/rack', 'rack');
    site.package('node_modules/@nodepool/driver-exampel', { name: '@nodepool/driver-exampel' });
    expect((await failure('exmaple')).remedy).toBe(
      'did you mean "example"? else run: npm install @nodepool/driver-exmaple',
    );
    expect((await failure('@acme/rak')).remedy).toContain('did you mean "@acme/rack"?');
  });

  it.each([
    ['pnpm-lock.yaml', 'pnpm add @nodepool/driver-x (in SITE)'],
    ['package-lock.json', 'npm install @nodepool/driver-x (in SITE)'],
    ['node_modules/.modules.yaml', 'pnpm add @nodepool/driver-x (in SITE)'],
  ])(
    'that is not installed, at a site with %s, is reported with the command of that package manager',
    async (trace, command) => {
      site.write(trace, '');
      const folders = [join(site.path, 'node_modules', '@nodepool', 'launcher', 'dist')];
      const { remedy } = await failure('x', site.search({ folders }));
      expect(remedy).toBe(`run: ${command.replace('SITE', site.path)}`);
    },
  );

  it('with nothing at its path is reported with the folder', async () => {
    const error = await failure('./nothing');
    expect(error.reason).toBe('not-installed');
    expect(error.message).toContain(join(site.path, 'etc', 'nothing'));
  });

  it.each<[string, object]>([
    ['has no entry', {}],
    ['has no API version', { nodepool: { driver: 'x' } }],
    ['has an invalid version', { nodepool: { driver: 'x', api: '1' } }],
    ['has an empty list of drivers', { nodepool: { drivers: {}, api: 1 } }],
    ['has a list of drivers without exports', { nodepool: { drivers: { p: 1 }, api: 1 } }],
    ['has both `driver` and `drivers`', { nodepool: { driver: 'p', drivers: { p: 'driver' }, api: 1 } }],
  ])('is reported if its package.json %s', async (_what, manifest) => {
    site.package('etc/p', { name: 'p', ...manifest }, 'index.js', `exports.driver = ${DRIVER_BODY}`);
    expect((await failure('./p')).reason).toBe('not-a-driver');
  });

  it.each(['', 'exports.driver = 5', 'exports.driver = { name: "x", schema: {} }', 'module.exports = null'])(
    'is reported if its package exports none (%j)',
    async (code) => {
      site.package('etc/p', { name: 'p', nodepool: { driver: 'p', api: 1 } }, 'index.js', code);
      const error = await failure('./p');
      expect(error.reason).toBe('not-a-driver');
      expect(error.message).toContain('p@1.2.3');
    },
  );

  it('for an older API is reported with the advice to upgrade it', async () => {
    site.driver('node_modules/@acme/old', '@acme/old', 'x', { nodepool: { driver: 'x', api: DRIVER_API - 1 } });
    const error = await failure('@acme/old');
    expect(error).toMatchObject({
      reason: 'api-mismatch',
      remedy: expect.stringContaining('npm install @acme/old@latest'),
    });
  });

  it('for a newer API is reported with the version to install and the Nodepool that it needs', async () => {
    const extra = {
      version: '4.5.6',
      nodepool: { driver: 'x', api: DRIVER_API + 1 },
      peerDependencies: { '@nodepool/core': '^2.0.0' },
    };
    site.driver('node_modules/@acme/new', '@acme/new', 'x', extra);
    const error = await failure('@acme/new');
    expect(error.reason).toBe('api-mismatch');
    expect(error.remedy).toContain('npm install "@acme/new@<4"');
    expect(error.remedy).toContain('@nodepool/core ^2.0.0');
  });

  it('of version 0 for a newer API is reported with the versions before it', async () => {
    const extra = { version: '0.3.0', nodepool: { driver: 'x', api: DRIVER_API + 1 } };
    site.driver('node_modules/@acme/new', '@acme/new', 'x', extra);
    expect((await failure('@acme/new')).remedy).toContain('npm install "@acme/new@<0.3.0"');
  });

  it('whose code fails is reported with the failure', async () => {
    site.package(
      'etc/p',
      { name: 'p', nodepool: { driver: 'p', api: 1 } },
      'index.js',
      'throw new Error("no cloud today")',
    );
    const error = await failure('./p');
    expect(error).toMatchObject({ reason: 'broken', message: expect.stringContaining('no cloud today') });
    expect(error.cause).toMatchObject({ message: 'no cloud today' });
  });

  it('whose files are missing is to be built in a checkout, and installed again elsewhere', async () => {
    const manifest = { name: 'p', main: 'dist/index.js', nodepool: { driver: 'p', api: 1 } };
    site.package('etc/p', manifest, 'source.js', '');
    site.package('node_modules/@acme/q', { ...manifest, name: '@acme/q' }, 'source.js', '');
    expect((await failure('./p')).remedy).toBe(
      `build it (in ${join(site.path, 'etc', 'p')}) or report it to its authors`,
    );
    expect((await failure('@acme/q')).remedy).toContain('install it again (npm install @acme/q');
  });

  it.each(['{', '[]', 'null'])('is reported if its package.json is %j', async (text) => {
    site.write('node_modules/@nodepool/driver-x/package.json', text);
    expect((await failure('x')).reason).toBe('broken');
  });
});

describe('a second copy of core', () => {
  it('of another major version is reported, with the command that installs a matching driver', async () => {
    site.driver('node_modules/@acme/x', '@acme/x', 'x');
    site.package('node_modules/@acme/x/node_modules/@nodepool/core', { name: '@nodepool/core', version: '7.0.0' });
    const { warnings } = await loadDriver('@acme/x', site.search());
    expect(warnings).toEqual([
      expect.stringMatching(/@nodepool\/core of another major version, 7\.0\.0 in .*npm install @acme\/x@latest/),
    ]);
  });

  it('in the driver’s own dependencies is reported', async () => {
    site.driver('node_modules/@acme/x', '@acme/x', 'x');
    site.package('node_modules/@acme/x/node_modules/@nodepool/core', { name: '@nodepool/core', version: '0.9.0' });
    const loaded = await loadDriver('@acme/x', site.search());
    expect(loaded.warnings).toEqual([expect.stringMatching(/second copy of @nodepool\/core, 0\.9\.0 .*npm dedupe/)]);
  });
});

describe('the list of installed drivers', () => {
  it('contains each driver once, unusable ones with the reason', async () => {
    site.driver('node_modules/@nodepool/driver-b', '@nodepool/driver-b', 'b');
    site.driver('node_modules/a-driver', 'a-driver', 'a');
    site.driver('node_modules/@acme/c', '@acme/c', 'c', { nodepool: { driver: 'c', api: 99 } });
    site.driver('etc/local', 'local', 'd');
    site.package('node_modules/other', { name: 'other' });
    site.package('node_modules/.bin/odd', { name: 'odd' });
    site.driver('etc', 'of-the-site', 'f');
    site.write('node_modules/broken/package.json', '{');
    const folders = [site.path, join(site.path, 'deep')];
    const list = await listInstalledDrivers(
      site.search({
        folders,
        aliases: new Map([
          ['d', './local'],
          ['e', './gone'],
          ['bee', '@nodepool/driver-b'],
          ['here', './'],
        ]),
      }),
    );
    expect(
      list.map(({ name, package: from, api, error, configNames }) => [name, from, api, error?.reason, configNames]),
    ).toEqual([
      ['a', 'a-driver', 1, undefined, ['a-driver']],
      ['b', '@nodepool/driver-b', 1, undefined, ['@nodepool/driver-b', 'bee', 'b']],
      ['c', '@acme/c', 99, 'api-mismatch', ['@acme/c']],
      ['d', 'local', 1, undefined, ['local', 'd']],
      ['e', './gone', undefined, 'not-installed', ['e']],
      ['f', 'of-the-site', 1, undefined, ['of-the-site', 'here']],
    ]);
  });
});
