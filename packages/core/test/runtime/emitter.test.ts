/** The event emitter. */

import { describe, expect, it } from '@jest/globals';
import { Emitter } from '../../src/index.js';

describe('Emitter', () => {
  it('calls listeners in order, reports an error that one throws, and calls the others', () => {
    const errors: unknown[] = [];
    const calls: string[] = [];
    const emitter = new Emitter<string>((error) => errors.push(error));
    const failure = new Error('broken');
    emitter.on((event) => calls.push(`first ${event}`));
    emitter.on(() => {
      throw failure;
    });
    emitter.on((event) => calls.push(`last ${event}`));
    emitter.emit('a');
    expect(calls).toEqual(['first a', 'last a']);
    expect(errors).toEqual([failure]);
  });

  it('does not call a listener that an earlier listener removed or added during the same event', () => {
    const calls: string[] = [];
    const emitter = new Emitter<void>(() => undefined);
    emitter.on(() => {
      calls.push('first');
      remove();
      emitter.on(() => calls.push('added'));
    });
    const remove = emitter.on(() => calls.push('removed'));
    emitter.emit();
    expect(calls).toEqual(['first']);
  });
});
