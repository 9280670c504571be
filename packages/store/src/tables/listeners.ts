import { Emitter, type Logger } from '@nodepool/core';

/** Creates an emitter that logs the errors of its listeners. */
export function storeEmitter<E>(log: Logger): Emitter<E> {
  return new Emitter((error) => log.error('A listener to changes of the store failed', error));
}
