/** The queue, compared with an array. */

import { expect, test } from '@jest/globals';
import { Fifo } from '../../src/client/fifo.js';

/** Fills and empties a queue in waves of up to `most` items, and calls `check` after each step. */
function waves(most: number, check: (queue: Fifo<number>, expected: readonly number[]) => void): void {
  const queue = new Fifo<number>();
  const expected: number[] = [];
  let next = 0;
  for (let wave = 1; wave <= most; wave += 1 + Math.floor(wave / 3)) {
    while (expected.length < wave) {
      queue.push(next);
      expected.push(next);
      next += 1;
      check(queue, expected);
    }
    // Every other wave leaves some items in the queue.
    while (expected.length > (wave % 2 === 0 ? 0 : wave / 3)) {
      expect(queue.shift()).toBe(expected.shift());
      check(queue, expected);
    }
  }
  expect(queue.takeAll()).toEqual(expected);
  check(queue, []);
  queue.push(next);
  check(queue, [next]);
}

test('items leave in the order of their arrival, and the first one is visible', () => {
  waves(1000, (queue, expected) => {
    expect(queue.first).toBe(expected[0]);
    expect(queue.size).toBe(expected.length);
  });
});

test('an empty queue has no item', () => {
  const queue = new Fifo<string>();
  expect(queue.shift()).toBeUndefined();
  expect(queue.size).toBe(0);
  queue.push('a');
  expect(queue.shift()).toBe('a');
  expect(queue.first).toBeUndefined();
  expect(queue.shift()).toBeUndefined();
  expect(queue.takeAll()).toEqual([]);
});
