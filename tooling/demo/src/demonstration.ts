/** Follows one request in ZooKeeper and asserts that every step was observed. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Narrator } from '@nodepool/harness';
import { openRequestor } from '@nodepool/requestor';
import { sleep, systemClock } from '@nodepool/core';
import { GONE, Observer } from './observer.js';
import { LABEL, type DemoEnvironment } from './environment.js';

const DEADLINE_MS = 60_000;
/** Time for which the node is in use (ms). */
const IN_USE_MS = 1000;
const REQUESTOR = 'demonstration';

/** Requests, uses and returns a node, and prints the observed states. Rejects if a step fails. */
export async function runDemonstration(
  environment: DemoEnvironment,
  narrator: Narrator,
  interrupted: AbortSignal,
): Promise<void> {
  await environment.launcher.while('serves a request from beginning to end', DEADLINE_MS, (signal) =>
    followRequest(environment, narrator, AbortSignal.any([signal, interrupted])),
  );
}

async function followRequest(environment: DemoEnvironment, narrator: Narrator, signal: AbortSignal): Promise<void> {
  const { zooKeeper } = environment;
  const observer = new Observer(zooKeeper, REQUESTOR, ({ kind, id, states }) => {
    narrator.say(`${kind.padEnd(7)} ${id.padEnd(14)}  ${states.slice(-2).join(' → ')}`);
  });
  const requestor = openRequestor(zooKeeper, { name: REQUESTOR });
  try {
    narrator.say(`requesting a node with the label ${LABEL}, as a requestor does`);
    const request = await requestor.request({ labels: [LABEL] }, { signal });
    const { id } = request;
    observer.wrote('request', id, 'requested');
    const lease = await request.take({ signal });
    const [node] = lease.nodes;
    if (node === undefined) throw new Error(`request ${id} was fulfilled without a node`);
    const address = `${node.address}:${JSON.stringify(node.connectionPort)}`;
    narrator.say(`the requestor uses node ${node.id} at ${address}`);
    await sleep(systemClock, IN_USE_MS, signal);
    await lease.return();
    await observer.seen('node', node.id, GONE, signal);
    // On a busy machine, other states can end before they are read.
    const missed = [
      ...observer.missed('request', id, ['requested', GONE]),
      ...observer.missed('node', node.id, ['in-use', GONE]),
    ];
    if (missed.length > 0) throw new Error(`these states were not observed: ${missed.join(', ')}`);
    narrator.say('the node has completed its life cycle');
    await runCommand(environment, narrator, signal);
  } finally {
    await requestor.close();
    observer.close();
  }
}

/** Runs a command on another node and prints its output. */
async function runCommand(environment: DemoEnvironment, narrator: Narrator, signal: AbortSignal): Promise<void> {
  const args = environment.run('uname', '-sr');
  if (args === undefined) return;
  narrator.say(`running a command on a new node: nodepool run --label ${LABEL} … -- uname -sr`);
  const { stdout } = await promisify(execFile)(process.execPath, [...args], { signal });
  narrator.say(`its output: ${stdout.trim()}`);
}
