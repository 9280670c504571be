/** `nodepool plan` and `nodepool journal`. */

import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { World } from './world.js';

const START = 1_790_000_000;

/** A launch that takes 20 seconds, and requests for a node every minute, each for five minutes. */
const JOURNAL = [
  { kind: 'journal', version: 1, since: START, until: START + 1800 },
  {
    ...{ kind: 'node', id: '1', labels: ['small'], provider: 'cloud', pool: 'main', deleting: 5 },
    attempts: [{ at: START, pool: 'cloud/main', label: 'small', result: 'ready', creating: 20 }],
  },
  ...Array.from({ length: 15 }, (_, index) => ({ created: START + index * 60, label: 'small', held: 300 })),
]
  .map((line) => JSON.stringify(line))
  .join('\n');

function config(maxServers: number): string {
  const pool = `{name: main, max-servers: ${maxServers}, labels: [{name: small, cloud-image: debian}]}`;
  return `
zookeeper-servers: [{host: localhost}]
labels: [{name: small}]
providers: [{name: cloud, driver: example, cloud-images: [{name: debian}], pools: [${pool}]}]
`;
}

let world: World;
let folder: string;
let file: string;
beforeEach(async () => {
  world = new World();
  await world.start();
  await world.writeConfig(config(10));
  folder = await mkdtemp(join(tmpdir(), 'nodepool-plan-'));
  file = join(folder, 'day.jsonl');
  await writeFile(file, JOURNAL);
});
afterEach(async () => {
  await rm(folder, { recursive: true });
  await world.stop();
});

describe('nodepool plan', () => {
  it('compares the configuration with another one', async () => {
    const other = join(folder, 'nodepool.yaml');
    await writeFile(other, config(2));
    const args = ['--requests', file, '--in-force', other, '--runs', '1'];
    const { code, out } = await world.run('plan', ...args);
    expect([code, out.noted]).toEqual([0, 'configuration in force: run 1 of 1\nconfiguration new: run 1 of 1']);
    expect(out.printed).toMatch(/^\| small \| in force \| 15 +\| \d+ min +\| \d+ min/m);
    expect(out.printed).toMatch(/^\| small \| new +\| 15 +\| 20 s +\| 20 s/m);
    expect(out.printed).toMatch(/^- Label small: p95 of the waits falls from \d+ min to 20 s\.$/m);

    const json = await world.run('plan', ...args, '-o', 'json');
    expect(JSON.parse(json.out.printed)).toMatchObject({
      configurations: [
        { name: 'in force', pools: { 'cloud/main': { limit: 2, mostNodes: { median: 2 } } } },
        { name: 'new', labels: { small: { wait: { p95: { median: 20, least: 20, most: 20 } } } } },
      ],
    });
  });

  it('searches a limit, and exits with 1 if there is none', async () => {
    const args = ['--requests', file, '--runs', '1', '--fit'];
    const found = await world.run('plan', ...args, 'small=p95:30s');
    expect(found.code).toBe(0);
    expect(found.out.printed).toMatch(/^The smallest limit that holds p95 of the waits of small within 30 s .* is 6 /);
    expect(found.out.noted).toMatch(/^limit none: p95 20 s: holds\nlimit 3: p95 \d+ min: does not hold\n/);
    const impossible = await world.run('plan', ...args, 'small=p95:10s', '--pool', 'cloud/main');
    expect([impossible.code, impossible.out.noted]).toEqual([
      1,
      expect.stringMatching(/does not hold\nnodepool: no limit holds the target$/),
    ]);
    const wrong = await world.run('plan', ...args, 'small=30s');
    expect([wrong.code, wrong.out.noted]).toEqual([2, expect.stringContaining('Expected LABEL=pN:DURATION')]);
  });

  it('names the wrong lines of a file, and a file that cannot be read', async () => {
    await writeFile(file, '{"created": 1790000000, "label": "small"}\n{"created": "soon", "label": "small"}\n');
    const { code, out } = await world.run('plan', '--requests', file);
    expect([code, out.noted]).toEqual([1, expect.stringContaining(`${file}, line 2: "created" must be unix seconds`)]);
    const none = join(folder, 'none');
    const missing = await world.run('plan', '--requests', none);
    const text = `nodepool: ${none} cannot be read: there is no such file`;
    expect([missing.code, missing.out.noted]).toEqual([1, text]);
    const { out: ofFolder } = await world.run('plan', '--requests', folder);
    expect(ofFolder.noted).toBe(`nodepool: ${folder} cannot be read: it is a folder`);
  });
});

describe('the journals of launchers', () => {
  let server: Server;
  beforeEach(async () => {
    server = createServer((_request, response) => {
      response.setHeader('Content-Encoding', 'gzip');
      // Several members are one file.
      const middle = JOURNAL.indexOf('\n') + 1;
      response.end(Buffer.concat([gzipSync(JOURNAL.slice(0, middle)), gzipSync(`${JOURNAL.slice(middle)}\n`)]));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(async () => {
    server.close();
    await once(server, 'close');
  });

  it('are printed, and replayed', async () => {
    await world.launcher({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
    const printed = await world.run('journal');
    expect([printed.code, printed.out.printed]).toEqual([0, JOURNAL]);
    const { code, out } = await world.run('plan', '--runs', '1');
    expect([code, out.noted]).toEqual([0, 'configuration as configured: run 1 of 1']);
    expect(out.printed).toMatch(/^\| small \| as configured \| 15 +\| 20 s +\| 20 s/m);
  });

  it('are the source of the documented commands', async () => {
    await world.launcher({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
    await writeFile(join(folder, 'nodepool-new.yaml'), config(3));
    const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'planning.md'), 'utf8');
    const commands = [...page.matchAll(/```sh\n(.*?)```/gs)].flatMap(([, text = '']) => text.trimEnd().split('\n'));
    expect(commands).toHaveLength(5);
    for (const command of commands) {
      const [text = '', target] = command.split(' > ');
      const [, ...args] = text
        .replaceAll('debian', 'small')
        .replaceAll('alpha/', 'cloud/')
        .replaceAll(/[a-z-]+\.(yaml|jsonl)/g, (name) => join(folder, name))
        .split(' ');
      const { code, out } = await world.run(...args);
      expect([command, code]).toEqual([command, 0]);
      if (target !== undefined) await writeFile(join(folder, target), out.printed);
    }
  });

  it('are required unless there is a file', async () => {
    const { code, out } = await world.run('plan');
    expect([code, out.noted]).toEqual([1, expect.stringContaining('no launcher with a web endpoint is registered')]);
  });
});
