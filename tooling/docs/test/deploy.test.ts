/** Checks of the files below deploy/ that need no cluster; `pnpm test:kubernetes` applies the manifests. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readSettings as readBridgeSettings } from '@nodepool/bridge-github';
import { loadConfig } from '@nodepool/config';
import { readSettings as readGatewaySettings } from '@nodepool/gateway';
import { parseYaml } from '@nodepool/pyyaml';
import Ajv from 'ajv';
import { REPOSITORY } from '../src/repository.js';

const DEPLOY = join(REPOSITORY, 'deploy');
const EXAMPLE = join(DEPLOY, 'kubernetes', 'example');
const SCHEMA = join(REPOSITORY, 'tooling', 'docs', 'definitions', 'compose-spec.json');

/** Returns the options of a daemon according to the reference, which is generated from the help texts. */
function optionsOf(program: string): readonly string[] {
  const page = readFileSync(join(REPOSITORY, 'docs', 'reference', 'programs.md'), 'utf8');
  const sections = page.split(/^##+ /m);
  return ['Options of all daemons', `\`${program}\``].flatMap((title) => {
    const section = sections.find((text) => text.startsWith(title)) ?? '';
    return [...section.matchAll(/^ +(?:(-\w), )?(--[\w-]+)/gm)].flatMap(([, short, long = '']) => [
      short ?? long,
      long,
    ]);
  });
}

describe('the compose file', () => {
  const text = readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8');
  // The published schema names draft 7 by an address that ajv does not know; ajv assumes that draft by itself.
  const schema = JSON.parse(readFileSync(SCHEMA, 'utf8'), (key, value: unknown) =>
    key === '$schema' ? undefined : value,
  ) as object;
  const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema);

  it('conforms to the schema of the compose specification', () => {
    expect([isValid(parseYaml(text).document?.value), isValid.errors]).toEqual([true, null]);
    expect(isValid({ services: { launcher: { image: 'nodepool-launcher', port: ['8005'] } } })).toBe(false);
  });

  it('builds targets of the Dockerfile', () => {
    const dockerfile = readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8');
    const targets = [...text.matchAll(/^ +target: (\S+)$/gm)].map(([, target]) => target);
    expect(targets).toEqual(['launcher', 'cli']);
    for (const target of targets) expect(dockerfile).toMatch(new RegExp(` AS ${target}$`, 'm'));
  });
});

describe('the settings', () => {
  const env = { OS_CLIENT_CONFIG_FILE: join(EXAMPLE, 'clouds.yaml') };

  it.each(['site/nodepool.yaml', 'kubernetes/example/nodepool.yaml'])('%s is valid', async (file) => {
    const loaded = await loadConfig({ file: join(DEPLOY, file), env });
    expect(loaded.ok ? [] : loaded.problems).toEqual([]);
  });

  it('of the gateway and the bridge are valid', async () => {
    const gateway = await readGatewaySettings(join(EXAMPLE, 'gateway', 'gateway.yaml'));
    expect(gateway.listen).toEqual({ address: '0.0.0.0', port: 8007 });
    const bridge = await readBridgeSettings(join(EXAMPLE, 'github', 'github.yaml'));
    expect(bridge.installations).toHaveLength(1);
  });
});

describe('the manifests', () => {
  const files = readdirSync(join(DEPLOY, 'kubernetes'), { recursive: true, encoding: 'utf8' });
  const programs = ['launcher', 'builder', 'gateway', 'bridge-github'];
  const manifestOf = (program: string): string => {
    const [file = ''] = files.filter((name) => name.endsWith(`/${program}.yaml`) && !name.startsWith('example'));
    return readFileSync(join(DEPLOY, 'kubernetes', file), 'utf8');
  };

  it.each(programs)('of %s use its options, its image and its port', (program) => {
    const text = manifestOf(program);
    const args = /^ +args:\s*\[([^\]]*)\]$/ms.exec(text)?.[1] ?? '';
    const command = program === 'bridge-github' ? 'nodepool-github' : `nodepool-${program}`;
    const used = [...args.matchAll(/'(-[\w-]+)'/g)].map(([, option]) => option);
    expect(used).toContain('-c');
    expect(optionsOf(command)).toEqual(expect.arrayContaining(used));
    expect(text).toContain(`image: nodepool-${program}\n`);
    const port = /--status-port',\s+'(\d+)'/.exec(text)?.[1] ?? '8005';
    expect(text).toContain(`containerPort: ${port}\n`);
    const dockerfile = readFileSync(join(REPOSITORY, 'Dockerfile'), 'utf8');
    expect(dockerfile).toContain(port);
  });

  it('name no image that the example does not replace', () => {
    const example = readFileSync(join(EXAMPLE, 'kustomization.yaml'), 'utf8');
    for (const program of programs) expect(example).toContain(`  - name: nodepool-${program}\n`);
  });
});
