/** The program `nodepool-slurm` with a gateway and a stand-in for `scontrol`, called as slurmctld calls it. */

import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { ProgramSite, type ProgramRun } from './support/program-site.js';
import { inState, TOKENS, until } from './support/world.js';

/** The output of Slurm 22.05, with one file for each node that it shows. */
const SCONTROL = `#!/bin/sh
cd "$FAKE_SLURM" || exit
if [ -e away ]; then rm away; echo 'slurm_load_node error: Unable to contact slurm controller (connect failure)' >&2; exit 1; fi
case "$*" in
  'show config') printf 'ClusterName             = main\\nSlurmctldHost[0]        = head(192.0.2.1)\\n' ;;
  'show hostnames '*) printf '%s\\n' "$3" | tr ',' '\\n' ;;
  '--all --oneliner show node') cat nodes/* 2>/dev/null || echo 'No nodes in the system' ;;
  '--all --oneliner show node '*) cat "nodes/$5" 2>/dev/null || { echo "Node $5 not found"; exit 1; } ;;
  '--all --oneliner show partition') echo "PartitionName=cloud AllowGroups=ALL Nodes=$(cat partition) State=UP" ;;
  update*)
    echo "$*" >>updates
    name=\${2#nodename=}
    state=
    case "$*" in
      *state=down*) state=DOWN+CLOUD ;;
      *state=power_down_force) state=IDLE+CLOUD+POWERING_DOWN ;;
    esac
    [ -z "$state" ] || echo "NodeName=$name NodeAddr=$name State=$state" >"nodes/$name" ;;
  *) echo "unexpected: $*" >&2; exit 1 ;;
esac
`;

const site = new ProgramSite('slurm', async () => {
  await mkdir(join(site.folder, 'nodes'));
  await writeFile(join(site.folder, 'partition'), 'cloud1,cloud2,cloud3');
  await site.executable('scontrol', SCONTROL);
});

/** Sets the state in which Slurm shows a node. */
async function setState(node: string, state: string, more = ''): Promise<void> {
  await writeFile(join(site.folder, 'nodes', node), `NodeName=${node} NodeAddr=${node} State=${state} CPUs=1${more}\n`);
}

function start(...args: readonly string[]): ProgramRun {
  const script = `echo "$SLURM_NODE" >>${site.folder}/started`;
  const token = join(site.folder, 'token');
  const env = { FAKE_SLURM: site.folder, NODEPOOL_GATEWAY: site.gateway.url, NODEPOOL_TOKEN_FILE: token };
  return site.run(['--label', 'big*=windows', '--label', 'debian', '--start', script, ...args], { env });
}

async function codeOf(...args: readonly string[]): Promise<number | null> {
  return start(...args).code;
}

function textOf(name: string): string {
  return site.textOf(name) ?? '';
}

function nameOf(node: string): string {
  return `slurm/main/head/${node}`;
}

it('leases a node for each name once, however often Slurm resumes it', async () => {
  for (const node of ['cloud1', 'cloud2']) await setState(node, 'ALLOCATED+CLOUD+NOT_RESPONDING+POWERING_UP');
  const two = [start('resume', 'cloud1,cloud2'), start('resume', 'cloud1,cloud2')];
  expect(await Promise.all(two.map(({ code }) => code))).toEqual([0, 0]);
  expect(await codeOf('resume', 'cloud1')).toBe(0);
  expect((await site.leases()).map(({ name }) => name).sort()).toEqual([nameOf('cloud1'), nameOf('cloud2')]);
  expect(textOf('started').split('\n').sort()).toEqual(['', 'cloud1', 'cloud2']);
  expect(textOf('updates')).toContain('update nodename=cloud1 nodeaddr=192.0.2.7 nodehostname=cloud1\n');
  // The next life of the node has another lease.
  await setState('cloud1', 'IDLE+CLOUD+POWERING_DOWN');
  expect(await codeOf('suspend', 'cloud1')).toBe(0);
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', 'cloud1')).toBe(0);
  const names = (await site.leases('waiting', 'ready', 'ending', 'ended')).map(({ name }) => name);
  expect(names.filter((name) => name === nameOf('cloud1'))).toHaveLength(2);
});

it('suspends and compares only leases with the complete identity', async () => {
  const client = site.gateway.client();
  const identity = { cluster: 'main', controller: 'head', node: 'cloud1' };
  const lookAlikes = [
    { name: nameOf('cloud1') },
    { name: nameOf('cloud1'), data: { slurm: { ...identity, controller: 'other' } } },
    { name: nameOf('cloud1'), data: { slurm: { ...identity, cluster: 'other' } } },
    { name: 'slurm/main/other/cloud1', data: { slurm: { ...identity, controller: 'other' } } },
    { name: 'cloud1', data: { slurm: identity } },
    { name: nameOf('cloud11'), data: { slurm: { ...identity, node: 'cloud11' } } },
  ];
  for (const each of lookAlikes) await client.create({ labels: ['debian'], ...each });
  const own = await client.create({
    labels: ['debian'],
    name: nameOf('cloud1'),
    data: { slurm: { ...identity, attempt: 1 } },
  });
  await setState('cloud11', 'IDLE+CLOUD');
  expect(await codeOf('suspend', 'cloud1')).toBe(0);
  await inState(client, own.id, 'ended');
  expect(await codeOf('reconcile')).toBe(0);
  expect((await site.leases()).map(({ name }) => name).sort()).toEqual(lookAlikes.map(({ name }) => name).sort());
});

it('tells Slurm why a node cannot be resumed', async () => {
  await site.useToken(TOKENS.small);
  await setState('big1', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', 'big1')).toBe(1);
  expect(textOf('updates')).toMatch(/^update nodename=big1 state=down reason=nodepool: .*does not permit/);
  expect(textOf('updates')).toContain('update nodename=big1 state=power_down_force\n');
  await site.useToken(TOKENS.acme);
  await site.executable('ssh', '#!/bin/sh\necho no route\nexit 255\n');
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', 'cloud1')).toBe(1);
  expect(textOf('updates')).toMatch(/update nodename=cloud1 state=down reason=nodepool: .*status 255: no route/);
  expect(await site.leases()).toEqual([]);
  site.world.launcher.mode = 'wait';
  await setState('cloud2', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('--timeout', '1', 'resume', 'cloud2')).toBe(1);
  expect(textOf('updates')).toContain('reason=nodepool: there is no node within 1 s');
  expect(await site.leases()).toEqual([]);
});

it('a comparison continues what killed programs have begun', async () => {
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  site.world.launcher.mode = 'wait';
  const killed = start('resume', 'cloud1');
  await until(() => Promise.resolve(killed.noted.includes('queued')));
  killed.child.kill('SIGKILL');
  await killed.code;
  // The resume of this node was killed before it had created a lease.
  await setState('cloud2', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('reconcile')).toBe(0);
  site.world.launcher.resume();
  await until(async () => (await site.leases('ready')).length === 2);
  expect(await codeOf('reconcile')).toBe(0);
  expect(await codeOf('reconcile')).toBe(0);
  expect(textOf('started').split('\n').sort()).toEqual(['', 'cloud1', 'cloud2']);
  // The suspend of these nodes was killed. Slurm hides the first one.
  await rm(join(site.folder, 'nodes', 'cloud1'));
  await setState('cloud2', 'IDLE+CLOUD+POWERED_DOWN');
  expect(await codeOf('reconcile')).toBe(0);
  expect(await site.leases()).toEqual([]);
});

it('tells Slurm that a node is lost, and resumes it with another lease', async () => {
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', 'cloud1')).toBe(0);
  await setState('cloud1', 'ALLOCATED+CLOUD');
  expect(await codeOf('reconcile')).toBe(0);
  // Its job still runs, and Slurm will power it down after that.
  await setState('cloud1', 'ALLOCATED+CLOUD+POWER_DOWN');
  expect(await codeOf('reconcile')).toBe(0);
  expect(textOf('updates')).not.toContain('state=');
  const [lease] = await site.leases('ready');
  await site.loseNode(lease);
  await inState(site.gateway.client(), lease?.id ?? '', 'ended');
  expect(await codeOf('reconcile')).toBe(0);
  expect(textOf('updates')).toMatch(/update nodename=cloud1 state=down reason=nodepool: lease \w+ has ended \(lost\)/);
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', 'cloud1')).toBe(0);
  expect(textOf('started')).toBe('cloud1\ncloud1\n');
});

it('leaves nodes alone that are not of this program', async () => {
  await setState('login', 'IDLE');
  await setState('cloud1', 'IDLE+CLOUD+POWERED_DOWN');
  expect(await codeOf('reconcile')).toBe(0);
  expect(textOf('updates')).toBe('');
});

it('makes a node usable again that did not start in time', async () => {
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', 'cloud1')).toBe(0);
  await setState('cloud1', 'DOWN+CLOUD+POWERED_DOWN', ' Reason=ResumeTimeout reached [slurm@2030-01-31T12:00:00]');
  await setState('cloud2', 'DOWN+CLOUD+POWERED_DOWN', ' Reason=broken disk [root@2030-01-31T12:00:00]');
  await setState('cloud3', 'DOWN+CLOUD+POWERED_DOWN', ' Reason=ResumeTimeout reached [slurm@2030-01-31T12:00:00]');
  expect(await codeOf('recover', 'cloud1')).toBe(0);
  expect(await site.leases()).toEqual([]);
  expect(await codeOf('reconcile')).toBe(0);
  const reset = textOf('updates').match(/nodename=\w+ state=power_down_force/g);
  expect(reset).toEqual(['nodename=cloud1 state=power_down_force', 'nodename=cloud3 state=power_down_force']);
});

it('a late suspend does not end the lease of a node that was resumed', async () => {
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', 'cloud1')).toBe(0);
  const late = start('suspend', 'cloud1');
  expect(await late.code).toBe(0);
  expect(late.noted).toContain('its lease stays');
  // A resume that is late does not lease a node that Slurm does not need.
  await setState('cloud2', 'IDLE+CLOUD+POWERED_DOWN');
  expect(await codeOf('resume', 'cloud2')).toBe(0);
  expect((await site.leases()).map(({ name }) => name)).toEqual([nameOf('cloud1')]);
});

it('ends the leases of removed nodes, but never many at once', async () => {
  const nodes = ['cloud1', 'cloud2', 'cloud3', 'gone1', 'gone2'];
  for (const node of nodes) await setState(node, 'ALLOCATED+CLOUD+POWERING_UP');
  expect(await codeOf('resume', nodes.join(','))).toBe(0);
  for (const node of ['gone1', 'gone2']) await rm(join(site.folder, 'nodes', node));
  const refused = start('reconcile');
  expect(await refused.code).toBe(1);
  expect(refused.noted).toContain('2 of 5 leases, more than 1');
  expect(await site.leases()).toHaveLength(5);
  await setState('gone2', 'IDLE+CLOUD');
  expect(await codeOf('reconcile')).toBe(0);
  expect((await site.leases()).map(({ name }) => name)).not.toContain(nameOf('gone1'));
  expect(await site.leases()).toHaveLength(4);
  // A controller that shows nothing does not end anything.
  for (const node of await readdir(join(site.folder, 'nodes'))) await rm(join(site.folder, 'nodes', node));
  await writeFile(join(site.folder, 'partition'), '(null)');
  expect(await codeOf('reconcile')).toBe(1);
  expect(await site.leases()).toHaveLength(4);
});

it('waits while the controller restarts, and reports usage errors', async () => {
  await setState('cloud1', 'ALLOCATED+CLOUD+POWERING_UP');
  await writeFile(join(site.folder, 'away'), '');
  expect(await codeOf('resume', 'cloud1')).toBe(0);
  expect(await codeOf('resume')).toBe(2);
  expect(await codeOf('--label', '=x', 'reconcile')).toBe(2);
  expect(await codeOf('unknown')).toBe(2);
  expect(await codeOf('resume', '--all')).toBe(2);
});
