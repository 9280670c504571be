/** The log line of every deletion in a cloud. */

import type { ExternalId } from '../model/node.js';
import type { Logger } from '../runtime/logger.js';

/** An object of a cloud that is about to be deleted. */
export interface DeletedObject {
  /** e.g. `instance`, `image`, `volume`. */
  readonly kind: string;
  readonly externalId: ExternalId;
  readonly name?: string;
}

/** Logs which object of a cloud is about to be deleted, and why. */
export function logCloudDeletion(log: Logger, { kind, externalId, name }: DeletedObject, because: string): void {
  log.info('Deleting in the cloud', {
    kind,
    external_id: externalId,
    ...(name === undefined ? {} : { name }),
    because,
  });
}
