/** The program `nodepool-garm` with a gateway, called as GARM calls an external provider. */

import { readdir, rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { BROKEN_SSH, LOCAL_SSH, ProgramSite, type ProgramRun } from './support/program-site.js';
import { TOKENS, until } from './support/world.js';

const CONTROLLER = '026f0a09-dead-4cd1-a4cf-9a0e2f3b3b4f';
const POOL = '9dcf590a-1192-4a9c-b3e4-e0902974c2c0';
const [NOT_FOUND, DUPLICATE] = [30, 31];

const site = new ProgramSite('garm', () => configure());

async function configure(more: object = {}): Promise<void> {
  const settings = { gateway: site.gateway.url, 'token-file': 'token', 'runner-user': userInfo().username, ...more };
  await writeFile(join(site.folder, 'nodepool.yaml'), JSON.stringify(settings));
}

interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Variables = Readonly<Record<string, string>>;

function start(command: string, input = '', variables: Variables = {}): ProgramRun {
  const env = {
    ...{ GARM_COMMAND: command, GARM_PROVIDER_CONFIG_FILE: join(site.folder, 'nodepool.yaml') },
    ...{ GARM_CONTROLLER_ID: CONTROLLER, GARM_POOL_ID: POOL, GARM_INTERFACE_VERSION: 'v0.1.1', ...variables },
  };
  return site.run([], { env, input });
}

async function garm(command: string, variables: Variables = {}, input = ''): Promise<Answer> {
  const run = start(command, input, variables);
  return { code: await run.code, stdout: run.printed, stderr: run.noted };
}

function template(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Returns the input of a creation, as GARM 0.2 writes it. */
function bootstrap(name: string, more: object = {}): string {
  const script = `#!/bin/bash\necho "$0 {{ .RunnerName }} {{ .CallbackToken }}" >> ${site.folder}/installed\n`;
  return JSON.stringify({
    ...{ name, tools: [], repo_url: 'https://github.com/acme/widgets' },
    ...{
      'callback-url': 'https://garm.example/api/v1/callbacks',
      'metadata-url': 'https://garm.example/api/v1/metadata',
    },
    ...{ 'instance-token': 'secret of the instance', 'ssh-keys': null, 'ca-cert-bundle': null },
    ...{ extra_specs: { runner_install_template: template(script) }, 'github-runner-group': '' },
    ...{ arch: 'amd64', os_type: 'linux', flavor: 'default', image: 'debian', labels: null, pool_id: POOL },
    ...{ user_data_options: { disable_updates_on_boot: false }, jit_config_enabled: true, ...more },
  });
}

async function create(name: string, more: object = {}, variables: Variables = {}): Promise<Answer> {
  return await garm('CreateInstance', variables, bootstrap(name, more));
}

function json(answer: Answer): unknown {
  return JSON.parse(answer.stdout);
}

async function namesListed(variables: Variables = {}): Promise<string[]> {
  const answer = await garm('ListInstances', variables);
  expect(answer.code).toBe(0);
  return (json(answer) as { readonly name: string }[]).map(({ name }) => name).sort();
}

async function installed(times: number): Promise<string[]> {
  const lines = (): string[] => site.textOf('installed')?.trimEnd().split('\n') ?? [];
  await until(() => Promise.resolve(lines().length >= times));
  return lines();
}

describe('the life of an instance', () => {
  it('begins with the installation of the runner, and ends with its deletion', async () => {
    const created = await create('garm-one');
    expect(created.code).toBe(0);
    const [lease] = await site.leases();
    const expected = {
      ...{ provider_id: lease?.id, name: 'garm-one', os_type: 'linux', os_arch: 'amd64', status: 'running' },
      addresses: [{ address: '192.0.2.7', type: 'public' }],
    };
    expect(json(created)).toEqual(expected);
    expect(lease?.lifetime).toBe(604_800);
    expect(await installed(1)).toEqual([expect.stringMatching(/ garm-one secret of the instance$/)]);
    // The secret is neither on the node nor in the lease.
    await until(async () => !(await readdir('/tmp')).some((name) => /^nodepool-garm-[0-9a-f]{32}$/.test(name)));
    expect(JSON.stringify(lease)).not.toContain('secret');

    for (const instance of [lease?.id ?? '', 'garm-one']) {
      expect(json(await garm('GetInstance', { GARM_INSTANCE_ID: instance }))).toEqual(expected);
      expect(await garm('StartInstance', { GARM_INSTANCE_ID: instance })).toMatchObject({ code: 0, stdout: '' });
    }
    expect(json(await garm('ListInstances'))).toEqual([expected]);
    expect((await garm('Stop', { GARM_INSTANCE_ID: 'garm-one' })).code).toBe(1);
    for (const id of [lease?.id ?? '', lease?.id ?? '', 'garm-one']) {
      expect(await garm('DeleteInstance', { GARM_INSTANCE_ID: id })).toMatchObject({ code: 0, stdout: '' });
      await site.world.clean();
    }
    expect((await garm('GetInstance', { GARM_INSTANCE_ID: lease?.id ?? '' })).code).toBe(NOT_FOUND);
    expect((await garm('Start', { GARM_INSTANCE_ID: 'garm-one' })).code).toBe(NOT_FOUND);
    expect(await namesListed()).toEqual([]);
  });

  it('continues if the creation is repeated, and has one runner', async () => {
    const first = json(await create('garm-two'));
    expect(json(await create('garm-two'))).toEqual(first);
    const again = await create('garm-two', { 'instance-token': 'another' });
    expect([again.code, again.stderr]).toEqual([DUPLICATE, expect.stringContaining('already installed')]);
    expect(await namesListed()).toEqual(['garm-two']);
    expect(await installed(1)).toHaveLength(1);
  });

  it('may have scripts before the installation, which run in order', async () => {
    const note = (text: string): string => template(`#!/bin/sh\necho ${text} >> ${site.folder}/installed\n`);
    const script = '{{- if .UseJITConfig }}\necho jit {{ .ExtraContext.where }}{{ else }}\nexit 1{{ end }}';
    const extra = {
      runner_install_template: template(`${script} >> ${site.folder}/installed`),
      pre_install_scripts: { '20-b': note('second'), '10 a;$(false)': note('first') },
      extra_context: { where: 'lab' },
    };
    expect((await create('garm-three', { extra_specs: extra })).code).toBe(0);
    expect(await installed(3)).toEqual(['first', 'second', 'jit lab']);
  });

  it('shows a lost node as an error', async () => {
    await create('garm-four');
    const [lease] = await site.leases();
    await site.loseNode(lease);
    // A lease all of whose nodes are lost has ended.
    await until(async () => (await garm('GetInstance', { GARM_INSTANCE_ID: lease?.id ?? '' })).code === NOT_FOUND);
  });
});

describe('a failed creation', () => {
  it.each([
    ['another system', { os_type: 'windows' }, 'os_type windows is not supported'],
    ['no template', { extra_specs: {} }, 'no runner_install_template'],
    [
      'a template with a loop',
      { extra_specs: { runner_install_template: template('{{ range .X }}') } },
      'not supported',
    ],
    ['an unknown field', { extra_specs: { runner_install_template: template('{{ .X }}') } }, 'not supported'],
    ['an unknown extra spec', { extra_specs: { runner_instal_template: '' } }, 'runner_install_template'],
    ['another pool', { pool_id: 'x' }, 'GARM_POOL_ID'],
    ['a name that is none', { name: 'a b' }, 'name'],
    ['no image', { image: '' }, 'image'],
  ])('because of %s creates no lease', async (_, more, reason) => {
    const { code, stdout, stderr } = await create('garm-bad', more);
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
    const { status, provider_fault: fault } = JSON.parse(stdout) as Record<string, string>;
    expect([status, Buffer.from(fault ?? '', 'base64').toString()]).toEqual(['error', expect.stringContaining(reason)]);
    expect(await site.leases()).toEqual([]);
  });

  it('releases its lease', async () => {
    await site.executable('ssh', BROKEN_SSH);
    expect((await create('garm-ssh')).code).toBe(1);
    await site.executable('ssh', LOCAL_SSH.replace('exec setsid', 'head -c 3 | setsid'));
    const truncated = await create('garm-cut');
    expect([truncated.code, truncated.stderr]).toEqual([1, expect.stringContaining('did not arrive completely')]);
    site.world.launcher.mode = 'fail';
    const failed = await create('garm-fail');
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('the image is missing')]);
    await configure({ timeout: 1 });
    site.world.launcher.mode = 'wait';
    const late = await create('garm-late');
    expect([late.code, late.stderr]).toEqual([1, expect.stringContaining('no node within 1 s')]);
    await site.world.clean();
    expect(await site.leases()).toEqual([]);
    expect(site.textOf('installed')).toBeUndefined();
  });

  it('is refused if the token does not permit the label', async () => {
    await site.useToken(TOKENS.small);
    const refused = await create('garm-windows', { image: 'windows' });
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('does not permit')]);
  });
});

describe('a killed creation', () => {
  it('leaves nothing that ListInstances does not show, and DeleteInstance by name ends it', async () => {
    for (const [mode, text] of [
      ['wait', 'queued'],
      ['serve', 'lease'],
      ['serve', 'in-use'],
    ] as const) {
      site.world.launcher.mode = mode;
      await site.executable(
        'ssh',
        LOCAL_SSH.replace('exec', `while [ -e ${site.folder}/blocked ]; do sleep 0.1; done; exec`),
      );
      await writeFile(join(site.folder, 'blocked'), '');
      const killed = start('CreateInstance', bootstrap('garm-killed'));
      await killed.notes(text);
      killed.child.kill('SIGKILL');
      await killed.code;
      const open = await site.leases();
      expect(open.map(({ lifetime }) => lifetime)).toEqual([600]);
      expect(await namesListed()).toEqual(['garm-killed']);
      expect((await garm('DeleteInstance', { GARM_INSTANCE_ID: 'garm-killed' })).code).toBe(0);
      await site.world.clean();
      expect(await namesListed()).toEqual([]);
      await rm(join(site.folder, 'blocked'));
    }
  });
});

describe('look-alikes', () => {
  it('of other controllers, pools and programs are neither shown nor deleted', async () => {
    const other = { GARM_CONTROLLER_ID: `${CONTROLLER}0`, GARM_POOL_ID: POOL };
    const otherPool = { GARM_POOL_ID: POOL.slice(0, -1) };
    await create('garm-same');
    await create('garm-same', {}, other);
    await create('garm-same', { pool_id: otherPool.GARM_POOL_ID }, otherPool);
    await create('garm-same-2', {}, other);
    const [garmLease] = (await site.leases()).slice(-1);
    // A lease of another program that contains the same data, and one that has the same name.
    await site.gateway.client().create({ labels: ['debian'], name: 'not of GARM', data: garmLease?.data ?? null });
    await site.gateway.client().create({ labels: ['debian'], name: garmLease?.name ?? '', data: { garm: 'other' } });
    const before = await site.leases();
    expect(before).toHaveLength(6);

    expect(await namesListed()).toEqual(['garm-same']);
    expect(await namesListed(other)).toEqual(['garm-same', 'garm-same-2']);
    // The id of another controller's instance, and names that only begin alike.
    for (const lease of before.filter(({ data }) => JSON.stringify(data).includes(`${CONTROLLER}0`))) {
      expect((await garm('DeleteInstance', { GARM_INSTANCE_ID: lease.id })).code).toBe(0);
    }
    for (const name of ['garm', 'garm-sam', 'garm-same-2', '*', '']) {
      expect((await garm('DeleteInstance', { GARM_INSTANCE_ID: name })).code).toBe(name === '' ? 1 : 0);
    }
    expect(await site.leases()).toHaveLength(6);
    expect((await garm('RemoveAllInstances')).code).toBe(0);
    expect(await site.leases()).toHaveLength(5);
    expect((await garm('RemoveAllInstances', { GARM_POOL_ID: '' })).code).toBe(0);
    expect(await site.leases()).toHaveLength(4);
    expect(await namesListed(other)).toEqual(['garm-same', 'garm-same-2']);
  });
});

describe('the interface', () => {
  it('has the commands of its versions', async () => {
    expect(await garm('GetVersion')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    expect(json(await garm('GetSupportedInterfaceVersions'))).toEqual(['v0.1.0', 'v0.1.1']);
    for (const command of ['GetConfigJSONSchema', 'GetExtraSpecsJSONSchema'])
      expect(json(await garm(command))).toMatchObject({ type: 'object', additionalProperties: false });
    const specs = (value: unknown): Variables => ({ GARM_POOL_EXTRASPECS: template(JSON.stringify(value)) });
    expect(await garm('ValidatePoolInfo', specs({ priority: 100 }))).toMatchObject({ code: 0, stdout: '' });
    expect((await garm('ValidatePoolInfo', specs(null))).code).toBe(0);
    expect((await garm('ValidatePoolInfo', specs({ priority: -1 }))).code).toBe(1);
  });

  it('refuses calls that are incomplete', async () => {
    for (const [command, variables, reason] of [
      ['', {}, 'GARM_COMMAND is missing'],
      ['DestroyInstance', {}, 'unknown command'],
      ['ListInstances', { GARM_POOL_ID: '' }, 'GARM_POOL_ID'],
      ['ListInstances', { GARM_CONTROLLER_ID: '' }, 'GARM_CONTROLLER_ID'],
      ['ListInstances', { GARM_INTERFACE_VERSION: 'v9' }, 'not supported'],
      ['ListInstances', { GARM_PROVIDER_CONFIG_FILE: join('/nowhere') }, 'cannot be read'],
      ['GetInstance', {}, 'GARM_INSTANCE_ID'],
      ['CreateInstance', {}, 'not JSON'],
    ] as const) {
      expect(await garm(command, variables)).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
    }
    await configure({ gatewy: 1 });
    expect(await garm('ListInstances')).toMatchObject({ code: 1, stderr: expect.stringContaining('gatewy') });
  });

  it('reports a gateway that refuses the token', async () => {
    await site.useToken('wrong');
    expect((await garm('ListInstances')).code).toBe(1);
  });
});
