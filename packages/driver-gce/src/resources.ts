/** Lists and deletes leaked images and their files in the bucket. Disks are deleted with their instances. */

import { isDriverError, stringAt, type Call, type Resource } from '@nodepool/core';
import { labelsOf } from './client/answers.js';
import type { Compute } from './client/compute.js';
import type { Storage } from './client/storage.js';
import { isCopy, tagsInLabels } from './labels.js';

export interface Places {
  readonly compute: Compute;
  /** Undefined if no bucket is configured. */
  readonly storage: Storage | undefined;
}

/**
 * Lists all tagged resources except copies; the caller identifies its own. Omits the files if the bucket cannot be
 * listed, so that leaked instances and images are deleted nevertheless.
 */
export async function listResources({ compute, storage }: Places, call: Call): Promise<readonly Resource[]> {
  const [images, objects] = await Promise.all([
    compute.listImages(call),
    storage === undefined ? [] : objectsIn(storage, call),
  ]);
  const found: Resource[] = [
    ...images.map((image) => resource('image', stringAt(image, 'name') ?? '', tagsInLabels(labelsOf(image)))),
    ...objects.map(({ name, metadata }) => resource('object', name, metadata)),
  ];
  return found.filter(({ tags, name }) => 'nodepool_provider_name' in tags && !isCopy(tags, name));
}

async function objectsIn(storage: Storage, call: Call): ReturnType<Storage['listObjects']> {
  try {
    return await storage.listObjects(call);
  } catch (error) {
    if (call.signal.aborted) throw error;
    call.log.warn('Could not list the files in the bucket; cleanup skips them', { error });
    return [];
  }
}

/** Deletes a resource. Succeeds if it does not exist. */
export async function deleteResource({ compute, storage }: Places, resource: Resource, call: Call): Promise<void> {
  const { kind, name } = resource;
  try {
    if (kind === 'object') await storage?.deleteObject(name, call);
    else await compute.finish(await compute.deleteImage(name, call), `deletion of image ${name}`, call);
  } catch (error) {
    if (!isDriverError(error) || error.code !== 'not-found') throw error;
  }
}

function resource(kind: string, name: string, tags: Readonly<Record<string, string>>): Resource {
  return { kind, externalId: name, name, tags };
}
