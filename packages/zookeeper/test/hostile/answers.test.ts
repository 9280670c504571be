/** Answers that arrive in pieces, late, twice, out of order, unsolicited, too long, or never. */

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { FrameDecoder } from '../../src/client/frame-decoder.js';
import { JuteWriter } from '../../src/client/jute-writer.js';
import { VirtualClock } from '@nodepool/core/testing';
import { connect, type ClientOptions, type ZooKeeper } from '../../src/index.js';
import { outcomeOf } from '../behaviour/harness.js';
import { errorOf, eventOf } from '../client/helpers.js';
import { loadCorpus } from './fuzz/corpus.js';
import { OPERATIONS } from './fuzz/operations.js';
import { clientInMemory, frame, hello, turn, type Peer } from './peer.js';

const SEED = 20_261_120;
const corpus = loadCorpus(join(__dirname, '../../fuzz/corpus.json'));
const REPEATABLE = ['get', 'children', 'exists', 'getAcl', 'set', 'sync', 'create', 'transaction', 'delete'] as const;
/** Size of the length that precedes a message. */
const LENGTH_BYTES = 4;
/** Offset of the error code in an answer, after the request number and the transaction id. */
const CODE_OFFSET = 12;
/** Calls whose recorded answer is successful and has a body. */
const ANSWERED_OPERATIONS = Object.keys(OPERATIONS).filter(
  (name) => name !== 'sync' && name !== 'delete' && corpus[name]?.[0]?.readInt32BE(CODE_OFFSET) === 0,
);

/** Returns the recorded answer to a type of call, with the request number `xid`. */
function answerTo(name: string, xid: number): Buffer {
  const message = Buffer.from(corpus[name]?.[0] ?? []);
  message.writeInt32BE(xid, 0);
  return frame(message);
}

function event(type: number, path: string): Buffer {
  const writer = new JuteWriter();
  writer.int(-1);
  writer.long(-1n);
  writer.int(0);
  writer.int(type);
  writer.int(3);
  writer.text(path);
  return frame(writer.take());
}

/** Returns a client with a session, and the server's end of its connection. */
async function pair(options: Partial<ClientOptions> = {}): Promise<{
  zk: ZooKeeper;
  peer: Peer;
  warnings: string[];
}> {
  const { zk, nextPeer } = clientInMemory({ random: { next: () => 0 }, ...options });
  const warnings: string[] = [];
  zk.on('warning', (warning) => warnings.push(warning.message));
  const peer = await nextPeer();
  peer.establish();
  await zk.connected();
  return { zk, peer, warnings };
}

/** Issues calls of these types. Resolves with their pending outcomes once they are sent. */
async function issued(zk: ZooKeeper, names: readonly string[]): Promise<Promise<string>[]> {
  const outcomes = names.map((name) => outcomeOf(OPERATIONS[name]!(zk)));
  await turn();
  return outcomes;
}

describe('answers of the server', () => {
  it('in pieces of any size reach their calls', async () => {
    const calls = fc.array(fc.constantFrom(...REPEATABLE), { minLength: 1, maxLength: 12 });
    const sizes = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(calls, sizes, async (names, pieceSizes) => {
        const { zk, peer, warnings } = await pair();
        const outcomes = await issued(zk, names);
        const stream = Buffer.concat(names.map((name, index) => answerTo(name, peer.xids[index]!)));
        for (let offset = 0, piece = 0; offset < stream.length; piece++) {
          const size = pieceSizes[piece % pieceSizes.length]!;
          peer.feed(stream.subarray(offset, offset + size));
          offset += size;
        }
        expect(await Promise.all(outcomes)).toEqual(names.map(() => 'ok'));
        expect([warnings, peer.ended]).toEqual([[], false]);
        peer.end();
        await zk.close();
      }),
      { seed: SEED, numRuns: 100 },
    );
  });

  it.each([
    ['reads', ['get', 'exists', 'children'], ['protocol', 'closed', 'closed']],
    ['writes', ['set', 'create', 'transaction'], ['outcome-unknown', 'outcome-unknown', 'outcome-unknown']],
    ['both', ['get', 'set', 'children'], ['protocol', 'outcome-unknown', 'closed']],
  ])(
    'in the wrong order to %s end the connection, and no call gets another call’s answer',
    async (_what, names, expected) => {
      const { zk, peer, warnings } = await pair();
      const outcomes = await issued(zk, names);
      const [first, second] = peer.xids;
      peer.feed(answerTo(names[1]!, second!));
      peer.feed(answerTo(names[0]!, first!));
      expect(peer.ended).toBe(true);
      expect(warnings).toEqual([expect.stringContaining(`answered request ${second!}, but the answer to ${first!}`)]);
      // The other reads wait for the next connection, until the client is closed.
      await zk.close();
      expect(await Promise.all(outcomes)).toEqual(expected);
    },
  );

  it('that are duplicated end the connection; the first one counts', async () => {
    const { zk, peer, warnings } = await pair();
    const [outcome] = await issued(zk, ['set']);
    const answer = answerTo('set', peer.xids[0]!);
    peer.feed(answer);
    peer.feed(answer);
    expect(await outcome).toBe('ok');
    expect([peer.ended, warnings.length]).toEqual([true, 1]);
    expect(warnings[0]).toContain('no request is pending');
    await zk.close();
  });

  it('that are duplicated are not used for a later call', async () => {
    const { zk, peer } = await pair();
    const [first, second] = await issued(zk, ['set', 'create']);
    const answer = answerTo('set', peer.xids[0]!);
    peer.feed(answer);
    peer.feed(answer);
    expect([await first, await second]).toEqual(['ok', 'outcome-unknown']);
    await zk.close();
  });

  it.each([0, -3, -5, -16, 2 ** 31 - 1, -(2 ** 31)])('to an unknown request %d end the connection', async (xid) => {
    const { zk, peer, warnings } = await pair();
    peer.feed(answerTo('sync', xid));
    expect([peer.ended, warnings.length]).toEqual([true, 1]);
    await zk.close();
  });

  it.each([
    ['pings', () => frame(corpus['ping']![0]!)],
    ['watches being set', () => frame(corpus['setWatches']![0]!)],
    ['events of an unknown type', () => event(99, '/x')],
    ['events of a session', () => event(-1, '')],
    ['events without a watch', () => event(3, '/not/watched')],
  ])('with unsolicited %s are ignored', async (_what, message) => {
    const { zk, peer } = await pair();
    for (let count = 0; count < 100; count++) peer.feed(message());
    const [outcome] = await issued(zk, ['get']);
    peer.feed(answerTo('get', peer.xids[0]!));
    expect([await outcome, peer.ended]).toEqual(['ok', false]);
    peer.end();
    await zk.close();
  });

  it.each(['', 'x', 'fuzz/a', '\u0000'])('with an event of the invalid path %j end the connection', async (path) => {
    const { zk, peer, warnings } = await pair();
    zk.watch('/', 'persistent-recursive', { onEvent: () => undefined });
    peer.feed(event(3, path));
    expect([peer.ended, warnings]).toEqual([true, [expect.stringContaining('which is not a path')]]);
    await zk.close();
  });

  it('with an event that is truncated at any byte end the connection', async () => {
    const whole = event(3, '/a').subarray(LENGTH_BYTES);
    for (let length = 0; length < whole.length; length++) {
      const { zk, peer, warnings } = await pair();
      let events = 0;
      zk.watch('/', 'persistent-recursive', { onEvent: () => events++ });
      peer.feed(frame(whole.subarray(0, length)));
      expect([peer.ended, events, warnings]).toEqual([true, 0, [expect.stringContaining('malformed message')]]);
      await zk.close();
    }
  });

  it('that arrive after their call was aborted do not affect other calls', async () => {
    const clock = new VirtualClock();
    const { zk, peer } = await pair({ clock });
    const late = errorOf(zk.get('/fuzz', { timeoutMs: 10 }));
    const patient = outcomeOf(zk.children('/fuzz', { timeoutMs: 1000 }));
    await turn();
    await clock.advance(20);
    expect((await late).code).toBe('timeout');
    peer.feed(answerTo('get', peer.xids[0]!));
    peer.feed(answerTo('children', peer.xids[1]!));
    expect([await patient, peer.ended]).toEqual(['ok', false]);
    peer.end();
    await zk.close();
  });

  it.each(ANSWERED_OPERATIONS)('to %s that are truncated at any byte are never accepted as complete', async (name) => {
    const whole = corpus[name]![0]!;
    for (let length = 4; length < whole.length; length += 1 + Math.floor(whole.length / 20)) {
      const { zk, peer } = await pair();
      const [outcome] = await issued(zk, [name]);
      const message = Buffer.from(whole.subarray(0, length));
      message.writeInt32BE(peer.xids[0]!, 0);
      peer.feed(frame(message));
      peer.end();
      await zk.close();
      expect(await outcome).toMatch(/^(protocol|outcome-unknown)$/);
    }
  });
});

describe('a message that is announced', () => {
  it.each([2 ** 30, 2 ** 20, 100_000])('with %d bytes uses memory only as it arrives', (length) => {
    const decoders: FrameDecoder[] = [];
    const before = process.memoryUsage().arrayBuffers;
    for (let count = 0; count < 10; count++) {
      const decoder = new FrameDecoder(2 ** 30, { onFrame: () => undefined });
      const header = Buffer.alloc(14);
      header.writeInt32BE(length);
      decoder.push(header);
      decoders.push(decoder);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10 * 128 * 1024);
    expect(decoders).toHaveLength(10);
  });

  it.each([-1, -(2 ** 31), 2 ** 31 - 1, 1025])(
    'with %d bytes ends the connection at once, if 1024 are allowed',
    async (length) => {
      const { zk, peer, warnings } = await pair({ maxAnswerBytes: 1024 });
      const header = Buffer.alloc(4);
      header.writeInt32BE(length);
      peer.feed(header);
      expect([peer.ended, warnings]).toEqual([true, [expect.stringContaining('maxAnswerBytes')]]);
      await zk.close();
    },
  );
});

describe('a connect response', () => {
  it.each([
    ['with another protocol version', hello(10_000, { version: 1 })],
    ['that is empty', frame(Buffer.alloc(0))],
    ['that is truncated', frame(hello(10_000).subarray(4, 20))],
    ['whose password is longer than the message', frame(oversizedPassword())],
  ])('%s ends the connection with a warning, and another one is tried', async (_what, greeting) => {
    const clock = new VirtualClock();
    const { zk, nextPeer } = clientInMemory({ clock, reconnectDelayMs: [1, 1] });
    const warned = eventOf(zk, 'warning');
    const first = await nextPeer();
    first.open();
    first.feed(greeting);
    expect((await warned)[0]).toMatchObject({ code: 'protocol' });
    expect(first.ended).toBe(true);
    const second = nextPeer();
    await clock.advance(10);
    (await second).establish();
    expect((await zk.connected()).id).toBe(7n);
    (await second).end();
    await zk.close();
  });

  it('that is duplicated ends the connection', async () => {
    const { zk, peer, warnings } = await pair();
    peer.feed(hello(10_000));
    expect([peer.ended, warnings.length]).toEqual([true, 1]);
    await zk.close();
  });
});

function oversizedPassword(): Buffer {
  const message = Buffer.from(hello(10_000).subarray(4));
  message.writeInt32BE(2 ** 31 - 1, 16);
  return message;
}

describe('a server that accepts connections and never answers', () => {
  it('is retried; calls fail at their deadlines with the reason', async () => {
    const silent = await SilentServer.listen();
    const zk = connect({ servers: silent.address, connectTimeoutMs: 20, reconnectDelayMs: [1, 2] });
    await eventOf(zk, 'warning');
    await silent.secondConnection;
    const error = await errorOf(zk.create('/a', undefined, { timeoutMs: 200 }));
    expect(error).toMatchObject({ code: 'timeout', outcome: 'not-applied' });
    expect(error.message).toContain('no session was confirmed within 20 ms');
    await zk.close();
    await silent.close();
  });

  it('does not prevent closing the client', async () => {
    const silent = await SilentServer.listen();
    const zk = connect({ servers: silent.address, connectTimeoutMs: 60_000 });
    const pending = errorOf(zk.get('/a'));
    await silent.firstConnection;
    await zk.close();
    expect(await pending).toMatchObject({ code: 'closed', outcome: 'not-applied' });
    await silent.close();
  });

  it('after the session was confirmed is left before that expires, and the outcome of writes is unknown', async () => {
    const clock = new VirtualClock();
    const { zk, peer } = await pair({ clock, sessionTimeoutMs: 9000, reconnectDelayMs: [1, 1] });
    const write = errorOf(zk.set('/a', Buffer.of(1), { timeoutMs: 60_000 }));
    await turn();
    await clock.advance(7000);
    expect([peer.ended, zk.state, zk.session?.lost.aborted]).toEqual([true, 'suspended', false]);
    expect(await write).toMatchObject({ code: 'outcome-unknown' });
    await zk.close();
  });
});

/** A server that accepts connections, reads, and never answers. */
class SilentServer {
  readonly firstConnection: Promise<void>;
  readonly secondConnection: Promise<void>;
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: Server) {
    this.firstConnection = new Promise((resolve) => server.once('connection', () => resolve()));
    this.secondConnection = this.firstConnection.then(
      () => new Promise((resolve) => server.once('connection', () => resolve())),
    );
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.resume();
      socket.on('error', () => socket.destroy());
    });
  }

  static async listen(): Promise<SilentServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new SilentServer(server);
  }

  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
