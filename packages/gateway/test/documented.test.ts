/** Runs the commands of docs/leases.md. */

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { inState, TOKENS, World, type RunningGateway } from './support/world.js';

const PAGE = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'leases.md'), 'utf8');
const MARKED = /<!-- executed by packages\/gateway\/test\/documented\.test\.ts -->\s+```sh\n(.*?)```/gs;
const [script = '', ...others] = [...PAGE.matchAll(MARKED)].map(([, text = '']) => text);

let world: World;
let gateway: RunningGateway;

beforeAll(async () => {
  world = await World.start();
  gateway = await world.gateway();
});
afterAll(() => world.stop());

it('the commands with curl create, follow, renew and release a lease', async () => {
  expect(others).toEqual([]);
  const env = { ...process.env, GATEWAY: gateway.url, TOKEN: TOKENS.acme };
  const { stdout } = await promisify(execFile)('bash', ['-euc', script], { env, cwd: world.folder });
  const [, id = ''] = /"id":"([0-9a-f]{32})"/.exec(stdout) ?? [];
  expect(stdout).toMatch(/event: lease\ndata: .*"state":"ready"/);
  expect(stdout).toMatch(/"state":"ending".*"outcome":"success"/);
  const ended = await inState(gateway.client(), id, 'ended');
  expect(ended).toMatchObject({ name: 'build 17', lifetime: 1800, end: { reason: 'released' } });
});

it('every phase and every reason of an end is documented', () => {
  const description = JSON.parse(readFileSync(join(__dirname, '..', 'openapi.json'), 'utf8')) as {
    readonly components: {
      readonly schemas: Readonly<
        Record<string, { readonly properties?: Readonly<Record<string, { readonly enum?: readonly string[] }>> }>
      >;
    };
  };
  const { Lease, End } = description.components.schemas;
  for (const words of [Lease?.properties?.['phase']?.enum, End?.properties?.['reason']?.enum]) {
    expect(words?.filter((word) => !PAGE.includes(`\`${word}\``))).toEqual([]);
  }
});
