/** Simulated time stops while this process exchanges data with itself. */

import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type * as kit from '@nodepool/driver-kit';
import { simulatedTime } from '@nodepool/driver-kit';

const LIMIT_MS = 600_000;

let server: Server;
let accepted: Socket[];

beforeEach(async () => {
  accepted = [];
  server = createServer((socket) => {
    accepted.push(socket);
    socket.on('error', () => undefined).on('data', (data) => socket.write(data));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  accepted.forEach((socket) => socket.destroy());
  server.close();
  await once(server, 'close');
});

function open(): Socket {
  return connect((server.address() as AddressInfo).port, '127.0.0.1');
}

/** Runs the callback this many event loop turns later, before work that is scheduled later for the same turn. */
function afterTurns(turns: number, callback: () => void): void {
  if (turns === 0) callback();
  else setImmediate(() => afterTurns(turns - 1, callback));
}

/** Numbers of turns for which simulated time waits for pending work. */
const TURNS = [1, 2, 3];

describe.each(TURNS)('simulated time, if data is sent %i event loop turns after its start', (sentAfter) => {
  it.each([0, 1, 2])('does not advance before a cut call is repeated %i turns later', async (repeatedAfter) => {
    const time = simulatedTime();
    time.clock.schedule(60_000, () => undefined);
    const socket = open();
    await once(socket, 'connect');
    let answered = false;
    const repeat = (): void => {
      const next = open();
      next.write('again');
      next.once('data', () => {
        answered = true;
        next.destroy();
      });
    };
    accepted[0]?.on('data', () => accepted[0]?.destroy());
    socket.resume().once('close', () => afterTurns(repeatedAfter, repeat));
    afterTurns(sentAfter, () => socket.write('cut'));
    expect(await time.until(() => answered, LIMIT_MS)).toBe(true);
    expect(time.clock.monotonic()).toBe(0);
  });
});

it('simulatedTime adds its listeners to a socket once, even if the kit is loaded twice', async () => {
  const listenersOfSocket = async (): Promise<number> => {
    const socket = open();
    const count = socket.listenerCount('connect');
    await once(socket, 'connect');
    socket.destroy();
    return count;
  };
  simulatedTime();
  const before = await listenersOfSocket();
  jest.isolateModules(() => {
    const again = jest.requireActual<typeof kit>('@nodepool/driver-kit');
    expect(again.simulatedTime).not.toBe(simulatedTime);
    again.simulatedTime();
  });
  expect(await listenersOfSocket()).toBe(before);
});
