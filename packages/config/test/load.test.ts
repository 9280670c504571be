/** The meaning of the file's keys, and the messages of all problems. */

import { describe, expect, it } from '@jest/globals';
import { DEFAULT_MAX_WAIT_MS, formatProblem, requiredFormats } from '@nodepool/config';
import { configOf, loadText, placesOf, problemsOf, PROVIDER } from './files.js';

describe('the top level', () => {
  it('has a default for every key', async () => {
    const config = await configOf('labels: []\n');
    expect(config).toMatchObject({
      webapp: { port: 8005, listenAddress: '0.0.0.0' },
      elementsDir: undefined,
      imagesDir: undefined,
      buildLogDir: '/var/log/nodepool/builds',
      buildLogRetention: 7,
      maxHoldAgeMs: Infinity,
      zookeeper: { servers: [], chroot: '', tls: undefined, sessionTimeoutMs: 10_000 },
    });
  });

  it('reads an empty folder as no folder', async () => {
    const config = await configOf('elements-dir: ""\nimages-dir: ""\nbuild-log-dir: ""\n');
    expect(config).toMatchObject({
      elementsDir: undefined,
      imagesDir: undefined,
      buildLogDir: '/var/log/nodepool/builds',
    });
  });

  it('reads durations in seconds, and 0 as no limit', async () => {
    const config = await configOf(`
max-hold-age: 60
zookeeper-timeout: 2.5
labels:
  - {name: a, max-ready-age: 3600, min-ready: 2, max-age: 7200, min-retention-time: 600}
  - {name: b, max-ready-age: 0, min-ready: -1, max-idle-time: 0, max-wait: 0}
  - {name: c, max-wait: 90}
`);
    expect(config.maxHoldAgeMs).toBe(60_000);
    expect(config.zookeeper.sessionTimeoutMs).toBe(2500);
    expect(config.labels.get('a')).toEqual({
      name: 'a',
      minReady: 2,
      maxReadyAgeMs: 3_600_000,
      maxAgeMs: 7_200_000,
      minRetentionMs: 600_000,
      maxIdleMs: 600_000,
      maxWaitMs: DEFAULT_MAX_WAIT_MS,
    });
    expect(config.labels.get('b')).toEqual({
      name: 'b',
      minReady: -1,
      maxReadyAgeMs: Infinity,
      maxAgeMs: Infinity,
      minRetentionMs: 0,
      maxIdleMs: Infinity,
      maxWaitMs: Infinity,
    });
    expect(config.labels.get('c')?.maxWaitMs).toBe(90_000);
  });

  it('reads a key without a value as an empty list, e.g. `labels:`', async () => {
    const config = await configOf('labels:\nproviders:\ndiskimages:\nwebapp:\nzookeeper-servers:\n');
    expect(config.labels.size).toBe(0);
  });

  it('reads the limits of tenants, also of resources that only a driver defines', async () => {
    const config = await configOf(`
tenant-resource-limits:
  - {tenant-name: t, max-servers: 1, max-cores: 2, max-ram: 3, max-volumes: 4, max-volume-gb: 5, L-123: 6}
`);
    expect(config.tenantLimits.get('t')).toEqual({
      instances: 1,
      cores: 2,
      ram: 3,
      volumes: 4,
      'volume-gb': 5,
      'L-123': 6,
    });
  });

  it('distinguishes addresses of ZooKeeper servers from ports, and reads one chroot', async () => {
    const config = await configOf('zookeeper-servers: [{host: "::1", port: 2181}, {host: b, chroot: test/}]\n');
    expect(config.zookeeper.servers).toEqual(['[::1]:2181', 'b:2281']);
    expect(config.zookeeper.chroot).toBe('/test');
  });

  it.each([
    ['[{host: a b}]', 'zookeeper-servers[0].host: expected the name or the address of a host, without a port'],
    ['[{host: "a:2181"}]', 'zookeeper-servers[0].host: expected the name or the address of a host, without a port'],
    ['[{host: a}, {host: a/b}]', 'zookeeper-servers[1].host: expected'],
    ['[{host: a, port: "65536"}]', 'zookeeper-servers[0].port: expected a port from 1 to 65535, found "65536"'],
    ['[{host: a, chroot: a/../b}]', 'zookeeper-servers[0].chroot: expected the path of a znode, found "a/../b"'],
    ['[{host: a}]\nzookeeper-timeout: 2147484', 'zookeeper-timeout: expected a number of at most 2147483'],
  ])('rejects what the client of ZooKeeper refuses: %s', async (servers, problem) => {
    const [first, ...others] = (await problemsOf(`zookeeper-servers: ${servers}\n`)).map(formatProblem);
    expect([first, others]).toEqual([expect.stringContaining(problem), []]);
  });

  it.each([
    ['"70000"', 'webapp.port: expected a port from 1 to 65535, found "70000"'],
    ['"0"', 'webapp.port: expected a port from 1 to 65535, found "0"'],
    ['70000', 'webapp.port: expected a whole number or a string of at most 65535, found 70000'],
  ])('rejects the port of the web endpoint that cannot exist: %s', async (port, problem) => {
    const problems = await problemsOf(`webapp:\n  port: ${port}\n`);
    expect(placesOf(problems)).toEqual(['2:9 webapp.port']);
    expect(formatProblem(problems[0]!)).toContain(problem);
  });

  it('reports a port that is too large once', async () => {
    const problems = await problemsOf('zookeeper-servers: [{host: a, port: 65536}]\n');
    expect(placesOf(problems)).toEqual(['1:37 zookeeper-servers[0].port']);
  });

  it.each([
    ['zookeeper-servers:\n  - host: a\n    port:\n', '3:5', 'zookeeper-servers[0].port', 'a whole number or a string'],
    ['zookeeper-servers:\n  - host:\n', '2:5', 'zookeeper-servers[0].host', 'the name or the address of a host'],
    ['webapp:\n  port:\n', '2:3', 'webapp.port', 'a whole number or a string'],
    ['webapp:\n  port: # none\n', '2:3', 'webapp.port', 'a whole number or a string'],
    ['max-hold-age:\n', '1:1', 'max-hold-age', 'a number'],
    ['labels: [{name: a, max-wait: }]\n', '1:20', 'labels[0].max-wait', 'a number'],
    ['diskimages: [{name: a, rebuild-age: }]\n', '1:24', 'diskimages[0].rebuild-age', 'a number'],
    [
      'tenant-resource-limits: [{tenant-name: a, max-cores: , my-gpus: }]\n',
      '1:43',
      'tenant-resource-limits[0].max-cores',
      'a whole number',
    ],
    ['providers: [{name: p, cloud: c, priority: }]\n', '1:33', 'providers[0].priority', 'a whole number'],
  ])('refuses a key without a value, but not null: %j', async (text, place, path, expected) => {
    const [first, ...others] = await problemsOf(text);
    expect(`${first?.line}:${first?.column}`).toBe(place);
    expect(first).toMatchObject({ path, expected, found: 'nothing', hint: 'write a value, or remove the key' });
    expect(others.map((other) => other.path)).toEqual(
      text.includes('gpus') ? ['tenant-resource-limits[0].my-gpus'] : [],
    );
    await configOf(text.replaceAll(/:(?= #|\n$| ?[,}])/g, ': null'));
  });

  it('refuses an empty number of the secure file', async () => {
    const secure = 'zookeeper-servers:\n  - host: a\n    port:\n';
    expect(placesOf(await problemsOf('labels: []\n', { secure }))).toEqual(['3:5 zookeeper-servers[0].port']);
  });

  it('accepts every form of a host', async () => {
    const hosts = '[{host: zk-1_a.example.org}, {host: "[::1]"}, {host: 192.0.2.1}, {host: ""}, {host: zk.example.}]';
    const { zookeeper } = await configOf(`zookeeper-servers: ${hosts}\n`);
    expect(zookeeper.servers).toEqual(
      ['zk-1_a.example.org', '[::1]', '192.0.2.1', 'localhost', 'zk.example.'].map((host) => `${host}:2281`),
    );
  });

  it('rejects two chroots, and a configuration without servers unless it is only checked', async () => {
    const two = 'zookeeper-servers:\n  - {host: a, chroot: /x}\n  - {host: b, chroot: /y}\n';
    expect(placesOf(await problemsOf(two))).toEqual(['3:23 zookeeper-servers[1].chroot']);
    const none = await problemsOf('labels: []\n', { zookeeper: 'required' });
    expect(none.map((problem) => problem.path)).toEqual(['zookeeper-servers']);
  });
});

describe('environment variables', () => {
  it('are substituted when they have the prefix', async () => {
    const config = await configOf('webapp: {port: %(NODEPOOL_PORT)}\nimages-dir: "%(NODEPOOL_DIR)/%(HOME)"\n', {
      env: { NODEPOOL_PORT: '8006', NODEPOOL_DIR: '/images', HOME: '/root' },
    });
    expect(config.webapp.port).toBe(8006);
    expect(config.imagesDir).toBe('/images/%(HOME)');
  });

  it('are reported when unset, once at their place, and not in comments', async () => {
    const problems = await problemsOf('# %(NODEPOOL_OLD)\nwebapp:\n  port: %(NODEPOOL_PORT)\n');
    expect(placesOf(problems)).toEqual(['3:9 webapp.port']);
    expect(problems[0]?.expected).toBe('the environment variable NODEPOOL_PORT to be set');
  });

  it('do not shift the positions of later problems, and are not shown', async () => {
    const problems = await problemsOf(
      'images-dir: &a "%(NODEPOOL_A)"\nwebapp: {listen_address: %(NODEPOOL_A), prot: 1}\nmax-hold-age: %(NODEPOOL_A)\n' +
        'build-log-retention: *a\n',
      {
        env: { NODEPOOL_A: 'a-long-and-secret-text' },
      },
    );
    expect(placesOf(problems)).toEqual(['2:41 webapp.prot', '3:15 max-hold-age', '4:22 build-log-retention']);
    expect(JSON.stringify(problems)).not.toContain('secret-text');
  });
});

describe('problems', () => {
  it('are reported together, including those of drivers', async () => {
    const problems = await problemsOf(`
image-dir: /x
labels: [{name: small, min-ready: "1"}, {name: small}]
diskimages: [{name: noble, pause: "yes"}]
providers:
  - name: cloud
    pools:
      - name: main
        labels:
          - {name: smal, diskimage: noble}
          - {name: small}
`);
    expect(placesOf(problems)).toEqual([
      '2:1 image-dir',
      '3:35 labels[0].min-ready',
      '3:48 labels[1].name',
      '4:35 diskimages[0].pause',
      '6:5 providers[0].cloud',
      '10:13 providers[0].pools[0].labels[0]',
      '10:20 providers[0].pools[0].labels[0].name',
      '11:13 providers[0].pools[0].labels[1]',
      '11:13 providers[0].pools[0].labels[1]',
    ]);
    const text = problems.map(formatProblem).join('\n');
    expect(text).toContain('did you mean "images-dir"?');
    expect(text).toContain('did you mean "small"?');
    expect(text).toContain('expected exactly one of the keys diskimage or cloud-image, found none of them');
    expect(text).toContain('expected at least one of the keys min-ram or flavor-name, found none of them');
    expect(text).toContain('found "1"; write it without quotes');
  });

  it('never contain secrets of the file or of the secure file', async () => {
    const main = 'diskimages: [{name: a, env-vars: {TOKEN: 4711}}]\nzookeeper-tls: {cert: a, key: 4712, ca: c}\n';
    const secure = 'zookeeper-servers: [{host: a, port: hunter2}]\ndiskimages: [{name: a, env-vars: {X: 4713}}]\n';
    const problems = await problemsOf(main, { secure });
    expect(problems.map((problem) => problem.path)).toEqual([
      'diskimages[0].env-vars.TOKEN',
      'zookeeper-tls.key',
      'zookeeper-servers[0].port',
      'diskimages[0].env-vars.X',
    ]);
    expect(JSON.stringify(problems)).not.toMatch(/471|hunter2/);
    expect(formatProblem(problems[0]!)).toContain(
      'expected a string, found a number that is not shown here; put it in quotes',
    );
  });

  it.each([
    'diskimages: |hunter2\n  a\n',
    'diskimages: [}hunter2\n',
    'a: `hunter2',
    'a: "\\xhunter2"',
    '%hunter2 x\n---\na: "',
  ])('never quote the text of a file that is not YAML (%j)', async (secure) => {
    const problems = await problemsOf('labels: []\n', { secure });
    expect(problems.map((problem) => problem.expected)).toEqual(['valid YAML']);
    expect(JSON.stringify(problems)).not.toContain('hunter2');
  });

  it('in the target of an alias are reported at the target', async () => {
    const text = PROVIDER.replace('labels:\n', 'labels: &labels\n').replace('min-ram: 1', 'min-ram: x');
    const problems = await problemsOf(`${text}      - {name: other, labels: *labels}\n`);
    expect(placesOf(problems)).toEqual([
      '11:54 providers[0].pools[0].labels[0].min-ram',
      '11:54 providers[0].pools[1].labels[0].min-ram',
    ]);
  });

  it('of a repeated key concern the last value, and a warning names the other places', async () => {
    const result = await loadText('images-dir: 1\nmax-hold-age: 5\nimages-dir: /b\nimages-dir: /c\n');
    if (!result.ok) throw new Error('refused');
    expect(result.config.imagesDir).toBe('/c');
    expect(placesOf(result.warnings)).toEqual(['4:1 images-dir']);
    expect(formatProblem(result.warnings[0]!)).toMatch(
      /expected each key once in a mapping, found it also on line 1 and 3, whose value is ignored; remove all but one/,
    );
    const wrong = await loadText('max-hold-age: 5\nmax-hold-age: soon\n');
    expect(wrong.ok ? [] : placesOf(wrong.problems)).toEqual(['2:15 max-hold-age']);
    expect(placesOf(wrong.warnings)).toEqual(['2:1 max-hold-age']);
  });

  it.each(['diskimages: []', 'diskimages: [{name: other}]', 'launch-retries: 1'])(
    'of a label whose disk image the provider does not list (%s) are warnings',
    async (list) => {
      const text = PROVIDER.replace('diskimages: [{name: noble}]\n    pools', `${list}\n    pools`)
        .replace('- name: main', '- name: main\n        max-servers: 0')
        .replace('[{name: noble}]', '[{name: noble}, {name: other}]');
      const result = await loadText(text);
      if (!result.ok) throw new Error('refused');
      expect(result.warnings.map(formatProblem)).toEqual([
        expect.stringMatching(
          /labels\[0\]\.diskimage: expected .* found "noble", which is not there; the provider declines/,
        ),
      ]);
      const image = result.config.providers.get('cloud')?.pools.get('main')?.labels.get('small')?.image;
      expect(image).toEqual({ kind: 'diskimage', name: 'noble' });
    },
  );

  it('of a label whose disk image is unknown or abstract reject the configuration', async () => {
    const unlisted = PROVIDER.replace('diskimages: [{name: noble}]\n    pools', 'diskimages: []\n    pools');
    for (const images of ['[{name: other}]', '[{name: noble, abstract: true}]']) {
      const problems = await problemsOf(unlisted.replace('[{name: noble}]', images));
      expect(problems.map(({ path }) => path)).toEqual(['providers[0].pools[0].labels[0].diskimage']);
    }
  });

  it('of the environment are warnings, or ignored, if the file alone is checked', async () => {
    const text = 'zookeeper-servers: [{host: a, port: "%(NODEPOOL_PORT)"}]\nmax-hold-age: "%(NODEPOOL_AGE)"\n';
    expect(placesOf(await problemsOf(text))).toEqual(['1:38 zookeeper-servers[0].port', '2:16 max-hold-age']);
    const result = await loadText(text, { withoutEnvironment: true });
    expect(result.ok).toBe(true);
    expect(placesOf(result.warnings)).toEqual(['1:38 zookeeper-servers[0].port', '2:16 max-hold-age']);
  });

  it('report duplicates in a provider', async () => {
    const text = PROVIDER.replace('[{name: noble}]\n    pools', '[{name: noble}, {name: noble}]\n    pools');
    const problems = await problemsOf(`${text}      - {name: main}\n`);
    expect(problems.map((problem) => problem.path)).toEqual([
      'providers[0].diskimages[1].name',
      'providers[0].pools[1].name',
    ]);
  });
});

describe('the secure file', () => {
  it('adds secrets to the image that it names, not to images that inherit from it', async () => {
    const main = 'diskimages: [{name: a, env-vars: {X: "1", Y: "1"}}, {name: b, parent: a}]\n';
    const config = await configOf(main, { secure: 'diskimages: [{name: a, env-vars: {X: "2"}}]\n' });
    expect(config.diskImages.get('a')?.envVars).toEqual({ X: '2', Y: '1' });
    expect(config.diskImages.get('b')?.envVars).toEqual({ X: '1', Y: '1' });
  });

  it('replaces the ZooKeeper servers of the main file', async () => {
    const main = 'zookeeper-servers: [{host: a}]\n';
    const { zookeeper } = await configOf(main, { secure: 'zookeeper-servers: [{host: b, chroot: x}]\n' });
    expect(zookeeper).toMatchObject({ servers: ['b:2281'], chroot: '/x' });
    expect((await configOf(main, { secure: 'diskimages: []\n' })).zookeeper.servers).toEqual(['a:2281']);
  });

  it('can be empty', async () => {
    expect((await loadText('labels: []\n', { secure: '' })).ok).toBe(true);
  });

  it('must not name unknown images or contain other keys', async () => {
    const main = 'diskimages: [{name: noble, abstract: true}, {name: jammy}]\n';
    const secure = 'diskimages:\n  - {name: noble, env-vars: {}}\n  - {name: jamy, env-vars: {}}\nlabels: []\n';
    const problems = await problemsOf(main, { secure });
    expect(placesOf(problems)).toEqual(['2:12 diskimages[0].name', '3:12 diskimages[1].name', '4:1 labels']);
    expect(problems[1]?.hint).toBe('did you mean "jammy"?');
  });
});

describe('disk images', () => {
  it('inherit over several levels: elements accumulate, env-vars are merged, other keys are overridden', async () => {
    const config = await configOf(`
diskimages:
  - {name: leaf, parent: middle, elements: [c], env-vars: {A: leaf}, username: "", pause: false}
  - {name: middle, parent: root, elements: [b], env-vars: {A: middle, B: middle}, python-path: /py, formats: [raw]}
  - {name: root, abstract: true, elements: [a], env-vars: {C: root}, username: me, rebuild-age: 10, pause: true, metadata: {n: 1, t: true}}
`);
    expect(config.diskImages.get('leaf')).toEqual({
      name: 'leaf',
      abstract: false,
      parent: 'middle',
      formats: ['raw'],
      keepFormats: [],
      deleteAfterUpload: false,
      rebuildAgeMs: 10_000,
      release: undefined,
      buildTimeoutMs: 28_800_000,
      elements: ['a', 'b', 'c'],
      envVars: { A: 'leaf', B: 'middle', C: 'root' },
      pause: false,
      username: 'me',
      pythonPath: '/py',
      shellType: undefined,
      dibCmd: 'disk-image-create',
      metadata: { n: '1', t: 'True' },
    });
  });

  it('read an age and a time-out of 0 as absent', async () => {
    const { diskImages } = await configOf(`
diskimages:
  - {name: parent, rebuild-age: 10, build-timeout: 20}
  - {name: child, parent: parent, rebuild-age: 0, build-timeout: 0}
  - {name: other, rebuild-age: 0, build-timeout: 0}
`);
    expect(diskImages.get('child')).toMatchObject({ rebuildAgeMs: 10_000, buildTimeoutMs: 20_000 });
    expect(diskImages.get('other')).toMatchObject({ rebuildAgeMs: 86_400_000, buildTimeoutMs: 28_800_000 });
  });

  it('preserve the text of the release', async () => {
    const config = await configOf(
      'diskimages: [{name: a, release: 8.0}, {name: b, release: &b 22.10}, {name: c, release: 21}, {name: d, release: *b}]\n',
    );
    expect([...config.diskImages.values()].map((image) => image.release)).toEqual(['8.0', '22.10', '21', '22.10']);
  });

  it('are rejected when they inherit from themselves', async () => {
    const problems = await problemsOf(
      'diskimages:\n  - {name: a, parent: b}\n  - {name: b, parent: a}\n  - {name: c, parent: a}\n',
    );
    expect(placesOf(problems)).toEqual(['3:23 diskimages[1].parent']);
    expect(problems[0]?.found).toBe('the cycle a → b → a');
  });

  it('are rejected when their command or their elements cannot be split into words', async () => {
    const problems = await problemsOf(
      `diskimages:\n  - {name: a, dib-cmd: 'dib "-x'}\n  - {name: b, dib-cmd: ' '}\n  - {name: c, elements: [vm, "it's"]}\n`,
    );
    expect(placesOf(problems)).toEqual([
      '2:24 diskimages[0].dib-cmd',
      '3:24 diskimages[1].dib-cmd',
      '4:30 diskimages[2].elements[1]',
    ]);
    expect(problems[0]).toMatchObject({ expected: 'words with closed quotes, as in a shell', found: '"dib \\"-x"' });
  });

  it('are built in their own formats and in those of their providers', async () => {
    const config = await configOf(
      PROVIDER.replace('{name: noble}]', '{name: noble, formats: [vhd, raw]}, {name: other}]'),
    );
    expect(requiredFormats(config, 'noble')).toEqual(['qcow2', 'raw', 'vhd']);
    expect(requiredFormats(config, 'other')).toEqual([]);
  });

  it('that are abstract cannot be uploaded', async () => {
    const problems = await problemsOf(PROVIDER.replace('[{name: noble}]', '[{name: noble, abstract: true}]'));
    expect(problems.map((problem) => problem.path)).toEqual(['providers[0].diskimages[0].name']);
  });
});

describe('a name that is used in paths', () => {
  it.each(['..', '.', 'a/b', '/a', '../../etc', '"a\\u0007b"'])('is rejected if it is %s', async (name) => {
    const problems = await problemsOf(
      `diskimages: [{name: ${name}}]\nproviders: [{name: ${name}, driver: openstack, cloud: c}]\n`,
    );
    expect(problems.map(({ path, expected }) => [path, expected])).toEqual([
      ['diskimages[0].name', 'a name without slashes and control characters, other than "." and ".."'],
      ['providers[0].name', 'a name without slashes and control characters, other than "." and ".."'],
    ]);
  });

  it.each(['debian-12', 'ubuntu-22.04', '..a', 'a..b', '"blank in it"', 'größe'])('can be %s', async (name) => {
    expect((await configOf(`diskimages: [{name: ${name}}]\n`)).diskImages.size).toBe(1);
  });
});

describe('the fingerprint', () => {
  it('is equal only for equal contents', async () => {
    const [a, b, c, d] = await Promise.all([
      loadText('labels: []\n'),
      loadText('labels: []\n'),
      loadText('labels: [] \n'),
      loadText('labels: []\n', { secure: '' }),
    ]);
    expect(a.fingerprint).toBe(b.fingerprint);
    expect(a.fingerprint).not.toBe(c.fingerprint);
    expect(d.fingerprint).toBe(a.fingerprint);
  });
});
