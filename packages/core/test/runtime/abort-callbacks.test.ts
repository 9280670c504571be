/** Callbacks of abort signals. */

import { describe, expect, it } from '@jest/globals';
import { CallbackController, addAbortCallback, removeAbortCallback } from '../../src/runtime/abort-callbacks.js';

describe.each<readonly [string, () => CallbackController | AbortController]>([
  ['a CallbackController', () => new CallbackController()],
  ['an AbortController', () => new AbortController()],
])('callbacks of %s', (_name, make) => {
  it('are not called if another callback removes them during the abort', () => {
    const controller = make();
    const called: string[] = [];
    const second = (): void => void called.push('second');
    addAbortCallback(controller.signal, () => {
      called.push('first');
      removeAbortCallback(controller.signal, second);
    });
    addAbortCallback(controller.signal, second);

    controller.abort(new Error('stop'));

    expect(called).toEqual(['first']);
  });

  it('are called once if one of them aborts the signal again', () => {
    const controller = make();
    const called: string[] = [];
    addAbortCallback(controller.signal, () => {
      called.push('first');
      controller.abort(new Error('again'));
    });
    addAbortCallback(controller.signal, () => void called.push('second'));

    controller.abort(new Error('stop'));

    expect(called).toEqual(['first', 'second']);
  });
});
