/** Behaviour of sessions: ephemeral znodes, loss, resumption, closing. */

import { describe, expect, it } from '@jest/globals';
import { isZooKeeperError, type ConnectionState, type Session, type ZooKeeperError } from '../../src/index.js';
import { bytes, Collector, type Harness } from './harness.js';

const SHORT_SESSION = { sessionTimeoutMs: 2000 };

export function describeSessions(harness: Harness): void {
  describeEphemerals(harness);
  describeLife(harness);
}

function describeEphemerals(harness: Harness): void {
  describe('ephemeral znodes', () => {
    it('are deleted when their client is closed', async () => {
      const owner = await harness.client();
      await owner.create(harness.path('e'), bytes('x'), { mode: 'ephemeral' });
      await owner.create(harness.path('p'));
      expect(await harness.zk.exists(harness.path('e'))).toBeDefined();
      await owner.close();
      await harness.zk.sync(harness.root);
      expect((await harness.zk.children(harness.root)).children).toEqual(['p']);
    });

    it('are deleted when the session expires, and their watches fire', async () => {
      const owner = await harness.client(SHORT_SESSION);
      await owner.create(harness.path('e-'), undefined, { mode: 'ephemeral-sequential' });
      const events = new Collector<string>();
      await harness.zk.exists(harness.path('e-0000000000'), {
        watch: (event) => events.add(`${event.type} ${event.path}`),
      });
      await harness.expire(owner);
      expect(await events.atLeast(1)).toEqual([`deleted ${harness.path('e-0000000000')}`]);
    });

    it('remain while the connection of their client is replaced', async () => {
      const owner = await harness.client();
      const { stat } = await owner.create(harness.path('e'), undefined, { mode: 'ephemeral' });
      await harness.reconnect(owner);
      expect(await harness.zk.exists(harness.path('e'))).toEqual(stat);
    });

    it('cannot have children', async () => {
      await harness.zk.create(harness.path('e'), undefined, { mode: 'ephemeral' });
      await expect(harness.zk.create(harness.path('e/child'))).rejects.toMatchObject({
        code: 'no-children-for-ephemerals',
      });
    });

    it('can be deleted by any client', async () => {
      const owner = await harness.client();
      await owner.create(harness.path('e'), undefined, { mode: 'ephemeral' });
      await harness.zk.delete(harness.path('e'));
      expect(await owner.exists(harness.path('e'))).toBeUndefined();
    });
  });
}

function describeLife(harness: Harness): void {
  describe('sessions', () => {
    it('are resumed with the same id after a lost connection', async () => {
      const client = await harness.client();
      const session = harness.sessionOf(client);
      const states: ConnectionState[] = [];
      client.on('state', (state) => states.push(state));
      await harness.reconnect(client);
      expect(client.session).toBe(session);
      expect(states).toEqual(['suspended', 'connected']);
      expect([session.confirmed, session.lost.aborted]).toEqual([true, false]);
    });

    it('are replaced when they are lost, and the old one reports its loss', async () => {
      const client = await harness.client(SHORT_SESSION);
      const session = harness.sessionOf(client);
      const losses: [Session, ZooKeeperError][] = [];
      client.on('lost', (lost, error) => losses.push([lost, error]));
      const next = await harness.expire(client);
      expect(next).not.toBe(session);
      expect(next.id).not.toBe(session.id);
      expect([session.lost.aborted, session.confirmed]).toEqual([true, false]);
      expect(session.lost.reason).toMatchObject({ code: 'session-lost' });
      expect(losses).toEqual([[session, session.lost.reason]]);
      expect([next.lost.aborted, next.confirmed, client.session === next]).toEqual([false, true, true]);
    });

    it('queue calls while there is no connection', async () => {
      const client = await harness.client();
      const resumed = harness.reconnect(client);
      const created = client.create(harness.path('a'));
      await resumed;
      const outcome = await created.then(
        () => 'created',
        (error: unknown) => (isZooKeeperError(error) ? error.code : error),
      );
      // Depends on the time of sending; the code must agree with the effect.
      expect(['created', 'outcome-unknown']).toContain(outcome);
      await client.exists(harness.path('a'));
    });

    it('end when the client is closed, which rejects later calls', async () => {
      const client = await harness.client();
      const session = harness.sessionOf(client);
      await client.close();
      await client.close();
      expect([client.state, client.session]).toEqual(['closed', undefined]);
      expect(session.lost.aborted).toBe(true);
      await expect(client.get(harness.root)).rejects.toMatchObject({ code: 'closed' });
      await expect(client.connected()).rejects.toMatchObject({ code: 'closed' });
    });

    it('do not delay the failure of a call that is already aborted', async () => {
      const client = await harness.client();
      const controller = new AbortController();
      controller.abort(new Error('enough'));
      await expect(client.create(harness.path('a'), undefined, { signal: controller.signal })).rejects.toMatchObject({
        code: 'aborted',
        outcome: 'not-applied',
      });
      expect(await client.exists(harness.path('a'))).toBeUndefined();
    });
  });
}
