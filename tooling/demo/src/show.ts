/** One request on its way, as it can be seen in ZooKeeper, and the check that all of it was seen. */

import { Requestor, type Narrator } from '@nodepool/harness';
import { lockRecipe } from '@nodepool/zookeeper';
import { sleep, systemClock } from '@nodepool/core';
import { GONE, Observer } from './observer.js';
import { LABEL, type Stage } from './stage.js';

const DEADLINE_MS = 60_000;
/** How long the node is kept in use. */
const IN_USE_MS = 1000;
const REQUESTOR = 'demonstration';

/** Asks for a node, uses it, gives it back, and tells what is seen. Rejects when it did not happen as it should. */
export async function playShow(stage: Stage, narrator: Narrator, interrupted: AbortSignal): Promise<void> {
  await stage.launcher.while('serves a request from beginning to end', DEADLINE_MS, (signal) =>
    play(stage, narrator, AbortSignal.any([signal, interrupted])),
  );
}

async function play(stage: Stage, narrator: Narrator, signal: AbortSignal): Promise<void> {
  const { zooKeeper } = stage;
  const observer = new Observer(zooKeeper, REQUESTOR, ({ kind, id, states }) => {
    narrator.say(`${kind.padEnd(7)} ${id.padEnd(14)}  ${states.slice(-2).join(' → ')}`);
  });
  const requestor = new Requestor(zooKeeper, lockRecipe(zooKeeper), REQUESTOR);
  try {
    await requestor.start();
    narrator.say(`asking for a node with the label ${LABEL}, as a requestor does`);
    const { id, finished } = await requestor.submit([LABEL]);
    observer.wrote('request', id, 'requested');
    const request = await raceAgainst(signal, finished);
    if (request.state !== 'fulfilled') throw new Error(`request ${id} failed`);
    const [node] = await requestor.take(request);
    if (node === undefined) throw new Error(`request ${id} was fulfilled without a node`);
    const address = `${String(node.fields['interface_ip'])}:${String(node.fields['connection_port'])}`;
    narrator.say(`the requestor uses node ${node.id} at ${address}`);
    await sleep(systemClock, IN_USE_MS, signal);
    await requestor.giveBack(node);
    await observer.seen('node', node.id, GONE, signal);
    const missed = [
      ...observer.missed('request', id, ['requested', 'pending', 'fulfilled', GONE]),
      ...observer.missed('node', node.id, ['building', 'ready', 'in-use', 'used', 'deleting', GONE]),
    ];
    if (missed.length > 0) throw new Error(`these states were not seen: ${missed.join(', ')}`);
    narrator.say('that was the life of a node');
  } finally {
    requestor.stop();
    observer.close();
  }
}

async function raceAgainst<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let giveUp = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    giveUp = () => reject(signal.reason as Error);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
