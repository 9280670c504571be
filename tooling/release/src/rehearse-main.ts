/** Implements `pnpm release:rehearse`: a complete release with a local registry and ZooKeeper. */

import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startZooKeeper } from '@nodepool/dev-zookeeper';
import { runCommandLine } from '@nodepool/harness';
import { connect } from '@nodepool/zookeeper';
import { copyWorkspace } from './copy.js';
import { Progress } from './progress.js';
import { readGuide } from './rehearse/guide.js';
import { rehearse } from './rehearse/rehearsal.js';
import { startRegistry } from './rehearse/registry.js';
import { workspaceRoot } from './workspace.js';

const HELP = `Usage: pnpm release:rehearse [--keep]

Plays a release in a copy of this checkout, with a registry and a ZooKeeper of its own: publishes every package; runs a
site from tarballs and one from the registry by the commands of the documentation, and one with pnpm; publishes one
driver alone, upgrades the sites and rolls them back; starts new drivers with "create @nodepool/driver", tests them and runs launchers with them.

  --keep   keep the folders with the logs of all programs, and print their path
  --help   this text

Exit status: 0 for success, 1 for a failure, 2 for wrong usage.
`;
const CONNECT_TIMEOUT_MS = 60_000;

async function runRehearsal(folder: string, progress: Progress): Promise<void> {
  const root = workspaceRoot();
  const tools = join(root, '.tools');
  await mkdir(tools, { recursive: true });
  const undo: (() => Promise<void>)[] = [];
  try {
    const registry = await startRegistry(tools, join(folder, 'registry'));
    undo.push(() => registry.stop());
    progress.say(`a registry serves at ${registry.url}`);
    const server = await startZooKeeper();
    undo.push(() => server.stop());
    const zooKeeper = connect({ servers: server.servers });
    undo.push(() => zooKeeper.close());
    await zooKeeper.connected({ timeoutMs: CONNECT_TIMEOUT_MS });
    const checkout = join(folder, 'checkout');
    await copyWorkspace(root, checkout);
    const sharedZooKeeper = { servers: server.servers, zooKeeper };
    const guide = await readGuide(checkout);
    await rehearse({ checkout, folder, registry, sharedZooKeeper, progress, guide });
    progress.say('the rehearsal has succeeded');
  } finally {
    for (const step of undo.reverse()) await step();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { keep: { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), 'nodepool-rehearsal-'));
  try {
    await runRehearsal(folder, new Progress((text) => void process.stdout.write(text)));
  } finally {
    if (values.keep) process.stdout.write(`kept in ${folder}\n`);
    else await rm(folder, { recursive: true, force: true });
  }
}

runCommandLine(HELP, main);
