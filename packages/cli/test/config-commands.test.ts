import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { run } from '../src/index.js';
import { CapturedOutput } from './console.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'nodepool-cli-'));
});

afterEach(() => rm(folder, { recursive: true }));

async function cli(config: string, ...args: string[]): Promise<{ code: number; out: CapturedOutput }> {
  const file = join(folder, 'nodepool.yaml');
  await writeFile(file, config);
  const out = new CapturedOutput();
  const code = await run(['-c', file, ...args], { out, env: {}, interrupted: new AbortController().signal });
  return { code, out };
}

/** Installs a driver package beside the configuration file. */
async function install(name: string, manifest: Record<string, unknown>, code: string): Promise<void> {
  const place = join(folder, 'node_modules', name);
  await mkdir(place, { recursive: true });
  await writeFile(
    join(place, 'package.json'),
    JSON.stringify({ name, version: '1.2.3', main: 'index.cjs', ...manifest }),
  );
  await writeFile(join(place, 'index.cjs'), code);
}

const GOOD_DRIVER = `
exports.driver = {
  name: 'toy',
  schema: { type: 'object' },
  getProviderConfig: (section) => ({ name: section.name, driver: section.driver, pools: new Map(), diskImages: new Map() }),
  getProvider: () => { throw new Error('not in this test'); },
};
`;

const CONFIG = `
zookeeper-servers: [{host: localhost}]
labels: []
providers:
  - {name: cloud-a, driver: toy}
  - {name: cloud-b, driver: '@acme/missing'}
`;

describe('nodepool config-validate', () => {
  it('exits with 0 for a valid configuration', async () => {
    const { code, out } = await cli('zookeeper-servers: [{host: localhost}]\n', 'config-validate');
    expect([code, out.printed]).toEqual([0, 'the configuration is valid']);
  });

  it('reports every problem with its position, and exits with 1', async () => {
    const { code, out } = await cli(
      'zookeeper-servers: [{host: localhost}]\ncolour: red\nmax-hold-age: soon\n',
      'config-validate',
    );
    expect(code).toBe(1);
    const places = out.printed.split('\n').map((line) => /nodepool\.yaml:(\d+):/.exec(line)?.[1]);
    expect(places).toEqual(['2', '3']);
    expect(out.noted).toContain('nodepool: the configuration has 2 problems');
  });

  it('with --compatible reports every key and driver that the Python Nodepool does not have', async () => {
    await install(
      '@nodepool/driver-acme',
      { nodepool: { driver: 'acme', api: 1 } },
      GOOD_DRIVER.replace("'toy'", "'acme'").replace(
        "{ type: 'object' }",
        "{ type: 'object', compatible: true, properties: { zones: { compatible: false }, zone: {} } }",
      ),
    );
    await install('@nodepool/driver-toy', { nodepool: { driver: 'toy', api: 1 } }, GOOD_DRIVER);
    const labels = 'zookeeper-servers: [{host: localhost}]\nlabels:\n  - {name: small, max-wait: 60}\n';
    const config = `${labels}providers:\n  - {name: a, driver: acme, zone: x, zones: [x]}\n  - {name: b, driver: toy}\n`;
    expect((await cli(config, 'config-validate')).code).toBe(0);
    const { code, out } = await cli(config, 'config-validate', '--compatible');
    expect(code).toBe(1);
    expect(out.printed.split('\n').map((line) => line.replace(/^.*nodepool\.yaml:/, ''))).toEqual([
      '3:19: labels[0].max-wait: expected a key that the Python Nodepool knows, found a new key',
      '5:38: providers[0].zones: expected a key that the Python Nodepool knows, found a new key',
      '6:23: providers[1].driver: expected a driver that the Python Nodepool has, found "toy"',
    ]);
    const old = await cli('zookeeper-servers: [{host: localhost}]\n', 'config-validate', '--compatible');
    expect([old.code, old.out.printed]).toEqual([0, 'the configuration is valid']);
  });

  it('with --file-only accepts a valid file without drivers, secure file and environment', async () => {
    const config = `
labels: []
max-hold-age: "%(NODEPOOL_AGE)"
providers:
  - {name: cloud-b, driver: '@acme/missing'}
`;
    expect((await cli(config, 'config-validate')).code).toBe(1);
    const { code, out } = await cli(config, 'config-validate', '--file-only');
    expect([code, out.printed]).toEqual([0, 'the file is valid']);
    expect(out.noted.match(/^warning: .*nodepool\.yaml:\d+/gm)).toHaveLength(2);
    const wrong = await cli(`${config}colour: red\n`, 'config-validate', '--file-only');
    expect([wrong.code, wrong.out.printed]).toEqual([1, expect.stringContaining('yaml:6:1: colour: expected one of')]);
  });

  it('tells warnings from errors as JSON and as annotations of GitHub', async () => {
    const config = 'max-hold-age: 1\nmax-hold-age: 2\ncolour: red\n';
    const json = await cli(config, 'config-validate', '--file-only', '--format', 'json');
    expect([json.code, JSON.parse(json.out.printed)]).toEqual([
      1,
      {
        valid: false,
        reason: 'the configuration has 1 problem',
        findings: [
          expect.objectContaining({ severity: 'warning', line: 2, column: 1, path: 'max-hold-age' }),
          expect.objectContaining({ severity: 'error', line: 3, message: expect.stringMatching(/^colour: expected/) }),
        ],
      },
    ]);
    const github = await cli(config, 'config-validate', '--file-only', '--format', 'github');
    expect(github.out.printed.split('\n')).toEqual([
      expect.stringMatching(/^::warning file=[^,]+nodepool\.yaml,line=2,col=1::max-hold-age: expected each key once/),
      expect.stringMatching(/^::error file=[^,]+nodepool\.yaml,line=3,col=1::colour: expected one of the keys/),
    ]);
    const valid = await cli('labels: []\n', 'config-validate', '--file-only', '--format', 'json');
    expect([valid.code, JSON.parse(valid.out.printed)]).toEqual([0, { valid: true, findings: [] }]);
  });

  it('reports a missing file', async () => {
    const out = new CapturedOutput();
    const missing = join(folder, 'missing.yaml');
    const code = await run(['-c', missing, 'config-validate'], {
      out,
      env: {},
      interrupted: new AbortController().signal,
    });
    expect(code).toBe(1);
    expect(out.printed).toContain(missing);
    expect(out.printed).toContain('found no file; name another one with --config');
  });

  it('exits with 1 when a provider is not served, with the reason', async () => {
    await install('@nodepool/driver-toy', { nodepool: { driver: 'toy', api: 1 } }, GOOD_DRIVER);
    const { code, out } = await cli(CONFIG, 'config-validate');
    expect([code, out.printed]).toEqual([1, '']);
    expect(out.noted).toMatch(/warning: .*providers\[1\]\.driver/);
    expect(out.noted).toContain('these providers are not served: cloud-b');
  });

  it('suggests an existing driver', async () => {
    await install('@nodepool/driver-toy', { nodepool: { driver: 'toy', api: 1 } }, GOOD_DRIVER);
    const { code, out } = await cli(CONFIG.replace('driver: toy', 'driver: tyo'), 'config-validate');
    expect([code, out.noted]).toEqual([1, expect.stringContaining('did you mean "toy"?')]);
  });

  it('exits with 1 when a driver reports that a provider cannot be served', async () => {
    const complaint = "context.unserved(['cloud'], 'there is no cloud nowhere');";
    const code = GOOD_DRIVER.replace('(section) => (', `(section, context) => { ${complaint} return (`).replace(
      'diskImages: new Map() })',
      'diskImages: new Map() }); }',
    );
    await install('@nodepool/driver-toy', { nodepool: { driver: 'toy', api: 1 } }, code);
    const config =
      'zookeeper-servers: [{host: localhost}]\nproviders: [{name: cloud-a, driver: toy, cloud: nowhere}]\n';
    const validated = await cli(config, 'config-validate');
    expect(validated.code).toBe(1);
    expect(validated.out.noted).toMatch(/nodepool\.yaml:2:\d+: providers\[0\]\.cloud: .*there is no cloud nowhere/);
    expect(validated.out.noted).toContain('these providers are not served: cloud-a');
  });
});

describe('nodepool drivers', () => {
  it('lists installed drivers with their providers, and missing drivers with the reason', async () => {
    await install('@nodepool/driver-toy', { nodepool: { driver: 'toy', api: 1 } }, GOOD_DRIVER);
    await install('@acme/old', { nodepool: { driver: 'old', api: 99 } }, GOOD_DRIVER);
    const { code, out } = await cli(CONFIG, 'drivers', '--format', 'json');
    expect(code).toBe(0);
    const rows: unknown[] = JSON.parse(out.printed);
    expect(rows).toContainEqual(
      expect.objectContaining({
        name: 'toy',
        package: '@nodepool/driver-toy',
        version: '1.2.3',
        api: 1,
        providers: ['cloud-a'],
      }),
    );
    expect(rows).toContainEqual(
      expect.objectContaining({ name: 'old', api: 99, providers: [], error: expect.stringMatching(/99/) }),
    );
    expect(rows).toContainEqual({
      name: '@acme/missing',
      package: null,
      version: null,
      api: null,
      providers: ['cloud-b'],
      error: expect.stringContaining('@acme/missing'),
    });
  });

  it('has one row for a driver that is named by its folder', async () => {
    await writeFile(join(folder, 'index.cjs'), GOOD_DRIVER);
    const manifest = { name: 'of-the-site', version: '0.1.0', main: 'index.cjs', nodepool: { driver: 'toy', api: 1 } };
    await writeFile(join(folder, 'package.json'), JSON.stringify(manifest));
    const config = `
zookeeper-servers: [{host: localhost}]
drivers: [{name: ours, package: ./}]
providers: [{name: by-alias, driver: ours}, {name: by-path, driver: ./}]
`;
    const { out } = await cli(config, 'drivers', '--format', 'json');
    const rows = JSON.parse(out.printed) as { providers: string[] }[];
    expect(rows.filter(({ providers }) => providers.length > 0)).toEqual([
      expect.objectContaining({ package: 'of-the-site', version: '0.1.0', error: null }),
    ]);
    expect(rows.flatMap(({ providers }) => providers).sort()).toEqual(['by-alias', 'by-path']);
  });

  it('lists installed drivers without a usable configuration', async () => {
    await install('@nodepool/driver-toy', { nodepool: { driver: 'toy', api: 1 } }, GOOD_DRIVER);
    const { code, out } = await cli('colour: red', 'drivers');
    expect(code).toBe(0);
    expect(out.printed).toContain('@nodepool/driver-toy');
    expect(out.noted).toContain('the configuration cannot be used');
  });
});

describe('an unreachable ZooKeeper', () => {
  it('is reported before connecting when its TLS files are unreadable', async () => {
    const config =
      'zookeeper-servers: [{host: localhost}]\nzookeeper-tls: {cert: /nonexistent/c, key: /nonexistent/k, ca: /nonexistent/a}\n';
    const { code, out } = await cli(config, 'list');
    expect(code).toBe(1);
    expect(out.noted).toMatch(/nodepool: zookeeper-tls\.cert: cannot read \/nonexistent\/c: there is no such file; .*PEM file/);
  });
});
