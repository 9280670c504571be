/** The registry of watches, where the server's own watches do not suffice. */

import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { PersistentWatch, WatchEvent, WatchListener } from '../../src/index.js';
import { WatchRegistry } from '../../src/client/watches.js';

function registry(): { watches: WatchRegistry; asked: string[] } {
  const asked: string[] = [];
  const watches = new WatchRegistry({
    addWatch: (path, mode) => asked.push(`add ${mode} ${path}`),
    removeWatches: (path) => asked.push(`remove ${path}`),
    setOneShot: (kind, path) => asked.push(`set ${kind} ${path}`),
    warn: (error) => asked.push(`warn ${error.code}`),
  });
  watches.connect();
  return { watches, asked };
}

function log(): { received: string[]; record: (event: WatchEvent) => void; listener: WatchListener } {
  const received: string[] = [];
  const record = (event: WatchEvent): void => void received.push(`${event.type} ${event.path}`);
  return { received, record, listener: { onEvent: record } };
}

const isAtOrAbove = (ancestor: string, path: string): boolean =>
  ancestor === path || path.startsWith(ancestor === '/' ? '/' : `${ancestor}/`);

const parentOf = (path: string): string => (path === '/' ? '' : path.slice(0, path.lastIndexOf('/')) || '/');

/** A registry that compares every watch with every event. */
class Model {
  readonly received: string[] = [];
  private persistent: { readonly id: number; readonly path: string; readonly mode: string }[] = [];
  private oneShots: { readonly id: number; readonly path: string; readonly kind: string }[] = [];

  constructor(private readonly recursive = new Set<string>()) {}

  addPersistent(id: number, path: string, mode: string): void {
    this.persistent.push({ id, path, mode });
    if (mode === 'persistent-recursive') this.recursive.add(path);
  }

  close(id: number): void {
    const path = this.persistent.find((each) => each.id === id)?.path ?? '';
    this.persistent = this.persistent.filter((each) => each.id !== id);
    this.forgetIfUnused(path);
  }

  addOneShot(id: number, path: string, kind: string): void {
    this.oneShots.push({ id, path, kind });
  }

  dispatch(event: WatchEvent): void {
    const { type, path } = event;
    if (type !== 'children') this.fire('data', event);
    if (type !== 'children') this.fire('exist', event);
    if (type === 'children' || type === 'deleted') this.fire('child', event);
    const concerned = this.persistent.filter((each) => isAtOrAbove(each.path, path));
    for (const watch of concerned.sort((one, other) => other.path.length - one.path.length)) {
      const own = watch.path === path;
      if (watch.mode === 'persistent' ? own : type !== 'children') this.note(watch.id, event);
    }
    const parent = parentOf(path);
    if ((type !== 'created' && type !== 'deleted') || !this.recursive.has(parent)) return;
    this.fire('child', { type: 'children', path: parent });
    for (const { id, mode, path: at } of this.persistent) {
      if (mode === 'persistent' && at === parent) this.note(id, { type: 'children', path: parent });
    }
  }

  private fire(kind: string, event: WatchEvent): void {
    const fired = this.oneShots.filter((each) => each.kind === kind && each.path === event.path);
    this.oneShots = this.oneShots.filter((each) => !fired.includes(each));
    for (const { id } of fired) this.note(id, event);
    this.forgetIfUnused(event.path);
  }

  private note(id: number, { type, path }: WatchEvent): void {
    this.received.push(`${id}: ${type} ${path}`);
  }

  private forgetIfUnused(path: string): void {
    const used = [...this.persistent, ...this.oneShots].some((each) => each.path === path);
    if (!used) this.recursive.delete(path);
  }
}

const PATHS = ['/', '/a', '/a/b', '/a/b/c', '/a/bc', '/ab', '/ab/c', '/b'];

describe('watches', () => {
  it('of all types get the same events as in a model that compares every watch with every event', () => {
    const path = fc.constantFrom(...PATHS);
    const step = fc.oneof(
      fc.record({ add: fc.constantFrom('persistent' as const, 'persistent-recursive' as const), path }),
      fc.record({ close: fc.nat(10) }),
      fc.record({ once: fc.constantFrom('data' as const, 'exist' as const, 'child' as const), path }),
      fc.record({ type: fc.constantFrom('created', 'deleted', 'changed', 'children'), path }),
      fc.record({ type: fc.constantFrom('created', 'deleted', 'changed', 'children'), path }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { watches } = registry();
        const model = new Model();
        const received: string[] = [];
        const open: { readonly id: number; readonly watch: PersistentWatch }[] = [];
        for (const [id, each] of steps.entries()) {
          const note = (event: WatchEvent): void => void received.push(`${id}: ${event.type} ${event.path}`);
          if ('add' in each) {
            open.push({ id, watch: watches.addPersistent(each.path, each.add, { onEvent: note }) });
            model.addPersistent(id, each.path, each.add);
          } else if ('close' in each) {
            const [closed] = open.splice(each.close, 1);
            closed?.watch.close();
            if (closed !== undefined) model.close(closed.id);
          } else if ('once' in each) {
            watches.watchingRead(each.path, note).done(each.once);
            model.addOneShot(id, each.path, each.once);
          } else {
            watches.dispatch(each);
            model.dispatch(each);
          }
        }
        expect(received).toEqual(model.received);
      }),
      { numRuns: 2000, seed: 1 },
    );
  });

  it('of both persistent modes at one path use the recursive one at the server, and both get events', () => {
    const { watches, asked } = registry();
    const [flat, deep] = [log(), log()];
    watches.addPersistent('/a', 'persistent', flat.listener);
    watches.addPersistent('/a', 'persistent-recursive', deep.listener);
    expect(asked).toEqual(['add persistent /a', 'add persistent-recursive /a']);
    watches.dispatch({ type: 'created', path: '/a/b' });
    watches.dispatch({ type: 'changed', path: '/a/b' });
    watches.dispatch({ type: 'changed', path: '/a' });
    expect(flat.received).toEqual(['children /a', 'changed /a']);
    expect(deep.received).toEqual(['created /a/b', 'changed /a/b', 'changed /a']);
  });

  it('are removed at the server with their last listener', () => {
    const { watches, asked } = registry();
    const first = watches.addPersistent('/a', 'persistent', log().listener);
    const second = watches.addPersistent('/a', 'persistent', log().listener);
    asked.length = 0;
    first.close();
    expect(asked).toEqual([]);
    second.close();
    second.close();
    expect(asked).toEqual(['remove /a']);
  });

  it('of the one-shot type survive a persistent one that is opened and closed during their read', () => {
    const { watches, asked } = registry();
    const once = log();
    const read = watches.watchingRead('/a', once.record);
    watches.addPersistent('/a', 'persistent', log().listener).close();
    expect(asked).toEqual(['add persistent /a']);
    read.done('data');
    expect(asked).toEqual(['add persistent /a']);
    watches.dispatch({ type: 'changed', path: '/a' });
    expect(once.received).toEqual(['changed /a']);
    expect(asked).toEqual(['add persistent /a', 'remove /a']);
  });

  it('of the persistent type that were closed during a read are removed if the read sets no watch', () => {
    const { watches, asked } = registry();
    const read = watches.watchingRead('/a', log().record);
    watches.addPersistent('/a', 'persistent', log().listener).close();
    read.done(undefined);
    expect(asked).toEqual(['add persistent /a', 'remove /a']);
  });

  it('of the one-shot type rely on a persistent one at their path, which remains until they fire', () => {
    const { watches, asked } = registry();
    const once = log();
    const watch = watches.addPersistent('/a', 'persistent', log().listener);
    asked.length = 0;
    const read = watches.watchingRead('/a', once.record);
    watch.close();
    read.done('data');
    expect([read.askServer, asked]).toEqual([false, []]);
    watches.dispatch({ type: 'changed', path: '/a' });
    expect([once.received, asked]).toEqual([['changed /a'], ['remove /a']]);
    expect(watches.watchingRead('/a', once.record).askServer).toBe(true);
  });

  it('of a failed read do not retain a persistent one', () => {
    const { watches, asked } = registry();
    const watch = watches.addPersistent('/a', 'persistent', log().listener);
    const read = watches.watchingRead('/a', log().record);
    watch.close();
    asked.length = 0;
    read.done(undefined);
    expect(asked).toEqual(['remove /a']);
  });

  it('are set again in several requests of acceptable size', () => {
    const { watches } = registry();
    const paths = Array.from({ length: 5000 }, (_, index) => `/a-path-of-fifty-characters-and-some-more-so/${index}`);
    for (const path of paths) watches.watchingRead(path, () => undefined).done('data');
    watches.addPersistent('/p', 'persistent', log().listener);
    const batches = watches.connect();
    expect(batches.length).toBeGreaterThan(1);
    expect(batches.flatMap((batch) => batch.paths.data)).toEqual(paths);
    expect(batches.flatMap((batch) => batch.paths.persistent)).toEqual(['/p']);
    for (const { paths: portion } of batches) expect(JSON.stringify(portion.data).length).toBeLessThan(150_000);
  });

  it('of the one-shot type at the path of a persistent one are set again too, so that missed events fire them', () => {
    const { watches } = registry();
    watches.addPersistent('/a', 'persistent-recursive', log().listener);
    watches.watchingRead('/a', log().record).done('child');
    expect(watches.connect().map(({ paths }) => [paths.child, paths.recursive])).toEqual([[['/a'], ['/a']]]);
  });

  it('continue when a listener throws, and the error is reported', async () => {
    const { watches } = registry();
    const { received, listener } = log();
    const thrown = new Promise((resolve) => {
      // In a program it becomes an uncaught exception; the test catches it in the next tick.
      const nextTick = process.nextTick;
      process.nextTick = ((callback: () => void) => {
        process.nextTick = nextTick;
        try {
          callback();
        } catch (error) {
          resolve(error);
        }
      }) as typeof process.nextTick;
    });
    watches.addPersistent('/a', 'persistent', {
      onEvent: () => {
        throw new Error('a defect');
      },
    });
    watches.addPersistent('/a', 'persistent', listener);
    watches.dispatch({ type: 'changed', path: '/a' });
    expect(received).toEqual(['changed /a']);
    expect(await thrown).toMatchObject({ message: 'a defect' });
  });
});
