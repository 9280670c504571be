/** One round of fuzzing: a client, a session, some calls, and corrupted answers. */

import { isZooKeeperError, type ZooKeeper } from '../../../src/index.js';
import { clientInMemory, frame, turn, type Peer } from '../peer.js';
import type { Corpus } from './corpus.js';
import { below, inPieces, mutated, noise, pick, type Random } from './mutations.js';
import { OPERATIONS } from './operations.js';

/** A forbidden reaction of the client. */
export class Finding extends Error {
  constructor(
    message: string,
    /** The bytes sent to the client, in hexadecimal. */
    readonly sent: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'Finding';
  }
}

/** Bytes. Small, so that an excessive allocation is detected. */
const MAX_ANSWER_BYTES = 1024 * 1024;
const NAMES = Object.keys(OPERATIONS);
const UNSOLICITED = ['event', 'ping', 'setWatches'] as const;

/** Runs a round. Throws `Finding` if the client reacts in a forbidden way. */
export async function fuzzRound(corpus: Corpus, random: Random): Promise<void> {
  const { zk, nextPeer } = clientInMemory({ random: { next: random }, maxAnswerBytes: MAX_ANSWER_BYTES });
  const calls: Promise<string>[] = [];
  const open = new Set<string>();
  zk.watch('/fuzz', 'persistent-recursive', { onEvent: ({ type, path }) => checkEvent(type, path, peer) });
  const peer = await nextPeer();
  peer.open();
  greet(peer, corpus, random);
  const names = Array.from({ length: 1 + below(random, 6) }, () => pick(random, NAMES));
  for (const [index, name] of names.entries()) calls.push(issue(zk, `${index} ${name}`, name, open, peer));
  await turn();
  for (const bytes of answersTo(names, peer, corpus, random)) {
    for (const piece of inPieces(bytes, random)) feed(peer, piece);
    if (random() < 0.1) await turn();
  }
  peer.end();
  await zk.close();
  await turn();
  if (open.size > 0) throw new Finding(`calls without an outcome: ${[...open].join(', ')}`, peer.sent);
  await Promise.all(calls);
}

function greet(peer: Peer, corpus: Corpus, random: Random): void {
  const hello = pick(random, corpus['connect'] ?? []);
  const spoilt = random() < 0.1 ? mutated(hello, random) : hello;
  for (const piece of inPieces(frame(spoilt), random)) feed(peer, piece);
}

function feed(peer: Peer, bytes: Buffer): void {
  try {
    peer.feed(bytes);
  } catch (error) {
    throw new Finding('an unforeseen error', peer.sent, error);
  }
}

/** Resolves with the outcome of the call. Rejects with a `Finding` if its error is not one of this package. */
async function issue(zk: ZooKeeper, label: string, name: string, open: Set<string>, peer: Peer): Promise<string> {
  open.add(label);
  try {
    await OPERATIONS[name]?.(zk);
    return 'ok';
  } catch (error) {
    if (isZooKeeperError(error)) return error.code;
    throw new Finding(`${name} failed with a foreign error`, peer.sent, error);
  } finally {
    open.delete(label);
  }
}

/** Returns messages for the client: answers, mostly corrupted, and unsolicited ones, in roughly the right order. */
function answersTo(names: readonly string[], peer: Peer, corpus: Corpus, random: Random): Buffer[] {
  // The watch comes first.
  const xids = [...peer.xids];
  const messages: Buffer[] = [];
  const due = ['sync', ...names];
  for (const [index, xid] of xids.entries()) {
    const name = random() < 0.9 ? (due[index] ?? 'sync') : pick(random, NAMES);
    const answer = Buffer.from(pick(random, corpus[name] ?? corpus['sync'] ?? []));
    answer.writeInt32BE(xid, 0);
    messages.push(answer);
    if (random() < 0.2) messages.push(Buffer.from(pick(random, corpus[pick(random, UNSOLICITED)] ?? [])));
  }
  if (random() < 0.1) swap(messages, random);
  if (random() < 0.1 && messages.length > 0) messages.push(pick(random, messages));
  return messages.map((message) => {
    const chance = random();
    if (chance < 0.4) return frame(message);
    // The request number stays intact, so that the client reads the corrupted rest.
    if (chance < 0.7) return frame(Buffer.concat([message.subarray(0, 4), mutated(message.subarray(4), random)]));
    if (chance < 0.8) return frame(mutated(message, random));
    if (chance < 0.9) return mutated(frame(message), random);
    return noise(random, below(random, 200));
  });
}

function swap(messages: Buffer[], random: Random): void {
  const one = below(random, messages.length);
  const other = below(random, messages.length);
  const [first, second] = [messages[one], messages[other]];
  if (first === undefined || second === undefined) return;
  messages[one] = second;
  messages[other] = first;
}

const EVENT_TYPES: readonly string[] = ['created', 'deleted', 'changed', 'children', 'watch-removed'];

function checkEvent(type: string, path: string, peer: Peer): void {
  if (!EVENT_TYPES.includes(type) || !path.startsWith('/fuzz')) {
    throw new Finding(`a watch received ${type} of ${path}`, peer.sent);
  }
}
