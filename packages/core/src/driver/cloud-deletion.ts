import type { ExternalId } from '../model/node.js';
import type { Logger } from '../runtime/logger.js';

/** A cloud resource that is about to be deleted. */
export interface DeletedObject {
  /** Kind of the resource, e.g. `instance`, `image` or `volume`. */
  readonly kind: string;
  readonly externalId: ExternalId;
  readonly name?: string;
}

/** Logs the cloud resource that is about to be deleted, and the reason. */
export function logCloudDeletion(log: Logger, { kind, externalId, name }: DeletedObject, because: string): void {
  log.info('Deleting in the cloud', { kind, external_id: externalId, name, because });
}
