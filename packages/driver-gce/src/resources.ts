/** What could be left behind besides instances: images, and files in the bucket that they are made from. Disks go with their instances. */

import { isDriverError, stringAt, type Call, type Resource } from '@nodepool/core';
import { labelsOf } from './client/answers.js';
import type { Compute } from './client/compute.js';
import type { Storage } from './client/storage.js';
import { tagsInLabels } from './labels.js';

export interface Places {
  readonly compute: Compute;
  /** Absent without a bucket. */
  readonly storage: Storage | undefined;
}

/** All that have our tags; who asks knows which of them are its own. */
export async function listResources({ compute, storage }: Places, call: Call): Promise<readonly Resource[]> {
  const [images, objects] = await Promise.all([compute.listImages(call), storage?.listObjects(call) ?? []]);
  const found: Resource[] = [
    ...images.map((image) => resource('image', stringAt(image, 'name') ?? '', tagsInLabels(labelsOf(image)))),
    ...objects.map(({ name, metadata }) => resource('object', name, metadata)),
  ];
  return found.filter(({ tags }) => 'nodepool_provider_name' in tags);
}

/** That it is gone already is a success. */
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
