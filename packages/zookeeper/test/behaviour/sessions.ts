/** Behaviour of sessions: ephemeral znodes, loss, resumption, closing. */

import { describe, expect, it } from '@jest/globals';
import { isZooKeeperError, type ConnectionState, type Session, type ZooKeeperError } from '../../src/index.js';
import { bytes, Collector, type Bench } from './harness.js';

const SHORT_SESSION = { sessionTimeoutMs: 2000 };

export function describeSessions(bench: Bench): void {
  describeEphemerals(bench);
  describeLife(bench);
}

function describeEphemerals(bench: Bench): void {
  describe('ephemeral znodes', () => {
    it('go when their client is closed', async () => {
      const owner = await bench.client();
      await owner.create(bench.path('e'), bytes('x'), { mode: 'ephemeral' });
      await owner.create(bench.path('p'));
      expect(await bench.zk.exists(bench.path('e'))).toBeDefined();
      await owner.close();
      await bench.zk.sync(bench.root);
      expect((await bench.zk.children(bench.root)).children).toEqual(['p']);
    });

    it('go when the session expires, and their watches fire', async () => {
      const owner = await bench.client(SHORT_SESSION);
      await owner.create(bench.path('e-'), undefined, { mode: 'ephemeral-sequential' });
      const events = new Collector<string>();
      await bench.zk.exists(bench.path('e-0000000000'), {
        watch: (event) => events.add(`${event.type} ${event.path}`),
      });
      await bench.expire(owner);
      expect(await events.atLeast(1)).toEqual([`deleted ${bench.path('e-0000000000')}`]);
    });

    it('stay while the connection of their client is replaced', async () => {
      const owner = await bench.client();
      const { stat } = await owner.create(bench.path('e'), undefined, { mode: 'ephemeral' });
      await bench.reconnect(owner);
      expect(await bench.zk.exists(bench.path('e'))).toEqual(stat);
    });

    it('cannot have children', async () => {
      await bench.zk.create(bench.path('e'), undefined, { mode: 'ephemeral' });
      await expect(bench.zk.create(bench.path('e/child'))).rejects.toMatchObject({
        code: 'no-children-for-ephemerals',
      });
    });

    it('may be deleted by any client', async () => {
      const owner = await bench.client();
      await owner.create(bench.path('e'), undefined, { mode: 'ephemeral' });
      await bench.zk.delete(bench.path('e'));
      expect(await owner.exists(bench.path('e'))).toBeUndefined();
    });
  });
}

function describeLife(bench: Bench): void {
  describe('sessions', () => {
    it('resume after a lost connection, with the same id', async () => {
      const client = await bench.client();
      const session = bench.sessionOf(client);
      const states: ConnectionState[] = [];
      client.on('state', (state) => states.push(state));
      await bench.reconnect(client);
      expect(client.session).toBe(session);
      expect(states).toEqual(['suspended', 'connected']);
      expect([session.confirmed, session.lost.aborted]).toEqual([true, false]);
    });

    it('are replaced when they are lost; the old one says so', async () => {
      const client = await bench.client(SHORT_SESSION);
      const session = bench.sessionOf(client);
      const losses: [Session, ZooKeeperError][] = [];
      client.on('lost', (lost, error) => losses.push([lost, error]));
      const next = await bench.expire(client);
      expect(next).not.toBe(session);
      expect(next.id).not.toBe(session.id);
      expect([session.lost.aborted, session.confirmed]).toEqual([true, false]);
      expect(session.lost.reason).toMatchObject({ code: 'session-lost' });
      expect(losses).toEqual([[session, session.lost.reason]]);
      expect([next.lost.aborted, next.confirmed, client.session === next]).toEqual([false, true, true]);
    });

    it('let calls wait while there is no connection', async () => {
      const client = await bench.client();
      const resumed = bench.reconnect(client);
      const created = client.create(bench.path('a'));
      await resumed;
      const outcome = await created.then(
        () => 'created',
        (error: unknown) => (isZooKeeperError(error) ? error.code : error),
      );
      // Depends on the time of sending; the code must agree with the effect.
      expect(['created', 'outcome-unknown']).toContain(outcome);
      await client.exists(bench.path('a'));
    });

    it('end with the client, and what is asked of it afterwards is refused', async () => {
      const client = await bench.client();
      const session = bench.sessionOf(client);
      await client.close();
      await client.close();
      expect([client.state, client.session]).toEqual(['closed', undefined]);
      expect(session.lost.aborted).toBe(true);
      await expect(client.get(bench.root)).rejects.toMatchObject({ code: 'closed' });
      await expect(client.connected()).rejects.toMatchObject({ code: 'closed' });
    });

    it('do not delay a call that was given up', async () => {
      const client = await bench.client();
      const controller = new AbortController();
      controller.abort(new Error('enough'));
      await expect(client.create(bench.path('a'), undefined, { signal: controller.signal })).rejects.toMatchObject({
        code: 'aborted',
        outcome: 'not-applied',
      });
      expect(await client.exists(bench.path('a'))).toBeUndefined();
    });
  });
}
