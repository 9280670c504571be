/** Both requestors on a connection that breaks repeatedly; the test acts as the launcher. */

import { mkdtempSync, rmSync } from 'node:fs';
import { connect as connectSocket, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { zooKeeperForTests, type ZooKeeperForTests } from '@nodepool/dev-zookeeper';
import { startRequestor, type RequestorKind } from '@nodepool/harness';
import { connect, type ZooKeeper } from '@nodepool/zookeeper';

const REQUESTS = '/nodepool/requests';
const PING = -2;
/** Has no common factor with the number of calls per request, so that each call loses its connection once. */
const CALLS_PER_CONNECTION = 7;
/** Requests per run: enough for a break at each call. */
const COUNT = 8;

/**
 * Breaks each connection at its seventh call: alternately before the server receives the call, and before the client
 * receives the answer.
 */
class BreakingProxy {
  breaks = 0;
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: Server) {}

  static async start(port: number): Promise<BreakingProxy> {
    const server = createServer();
    const proxy = new BreakingProxy(server);
    server.on('connection', (client) => proxy.relay(client, connectSocket(port, '127.0.0.1')));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy does not listen');
    return address.port;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private relay(client: Socket, server: Socket): void {
    let frames = 0;
    /** The number of the call whose answer gets lost. */
    let lost: number | undefined;
    const close = (): void => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on('error', close).on('close', () => {
        this.sockets.delete(socket);
        close();
      });
    }
    forEachFrame(client, (frame) => {
      // The first frame opens the session; pings come at any time.
      if (frames === 0 || frame.readInt32BE(4) !== PING) frames += 1;
      if (frames <= CALLS_PER_CONNECTION) return void server.write(frame);
      this.breaks += lost === undefined ? 1 : 0;
      if (this.breaks % 2 === 0) {
        close();
        return;
      }
      lost ??= frame.readInt32BE(4);
      server.write(frame);
    });
    let opened = false;
    forEachFrame(server, (frame) => {
      if (opened && frame.readInt32BE(4) === lost) {
        close();
        return;
      }
      opened = true;
      client.write(frame);
    });
  }
}

function forEachFrame(socket: Socket, act: (frame: Buffer) => void): void {
  let received = Buffer.alloc(0);
  socket.on('data', (piece: Buffer) => {
    received = Buffer.concat([received, piece]);
    while (received.length >= 4 && received.length >= 4 + received.readInt32BE(0)) {
      const length = 4 + received.readInt32BE(0);
      act(received.subarray(0, length));
      received = received.subarray(length);
    }
  });
}

let server: ZooKeeperForTests;
let launcher: ZooKeeper;
let folder: string;
let proxy: BreakingProxy;

beforeAll(async () => {
  // Uses the requestor of this repository, even if the environment names another one.
  delete process.env['NODEPOOL_REQUESTOR'];
  folder = mkdtempSync(join(tmpdir(), 'requestor-'));
  server = await zooKeeperForTests();
  launcher = connect({ servers: server.servers });
  for (const path of ['/nodepool', REQUESTS, '/nodepool/nodes']) await launcher.create(path);
});

afterEach(() => proxy.stop());

afterAll(async () => {
  await launcher.close();
  await server.stop();
  rmSync(folder, { recursive: true });
});

const json = (value: object): Buffer => Buffer.from(JSON.stringify(value));

/** Allocates a new node to each new request. */
async function serve(path: string): Promise<void> {
  const request = JSON.parse(Buffer.from((await launcher.get(path)).data).toString()) as Record<string, unknown>;
  const id = path.slice(REQUESTS.length + 1);
  const [label] = request['node_types'] as string[];
  const node = { state: 'ready', type: [label], allocated_to: id, provider: 'p', pool: 'main', interface_ip: null };
  const created = await launcher.create('/nodepool/nodes/', json(node), { mode: 'persistent-sequential' });
  const nodes = [created.path.slice('/nodepool/nodes/'.length)];
  await launcher.set(path, json({ ...request, state: 'fulfilled', nodes }));
}

const KINDS: RequestorKind[] = ['python', 'library'];

it.each(KINDS)(
  'requestor %s uses all nodes with one request each, although each of its calls loses the connection',
  async (kind) => {
    const chroot = server.servers.slice(server.servers.indexOf('/'));
    proxy = await BreakingProxy.start(Number(/:(\d+)/.exec(server.servers)?.[1]));
    const served: Promise<void>[] = [];
    const watch = launcher.watch(REQUESTS, 'persistent-recursive', {
      onEvent: ({ type, path }) => {
        if (type === 'created') served.push(serve(path));
      },
      onReset: () => undefined,
    });
    const address = { servers: `127.0.0.1:${proxy.port}${chroot}` };
    const args = ['--labels', 'debian', '--requests', String(COUNT)];
    const requestor = await startRequestor(address, join(folder, `${kind}.log`), args, { kind });
    const result = await requestor.result;
    watch.close();
    await Promise.all(served);

    expect(result.summary).toMatchObject({ outcomes: { fulfilled: COUNT }, problems: [], nodes: COUNT });
    expect(served).toHaveLength(COUNT);
    expect(proxy.breaks).toBeGreaterThan(COUNT);
    expect((await launcher.children(REQUESTS)).children).toEqual([]);
  },
);
