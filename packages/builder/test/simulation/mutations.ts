/** Defects of the builder, at least one per rule of the checker, which prove that the checker can fail. */

import type { ExternalId, ImageManager, ImageUpload, ImageUploadRequest, ListedImage } from '@nodepool/core';
import type { ImageStore } from '@nodepool/store';
import { overlay } from '@nodepool/simulated-process';
import type { DiskImageFiles } from '../../src/index.js';
import type { Mutation } from './world.js';

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'deletes the newest uploads instead of the oldest',
    rule: 'S10',
    store: (store) =>
      withImages(store, (images) => ({
        *uploads(query): Iterable<ImageUpload> {
          yield* [...images.uploads(query)].reverse();
        },
      })),
  },
  {
    name: 'deletes another image than the requested one',
    rule: 'S10',
    manager: (manager) =>
      overlay(manager, {
        deleteImage: async (id, call) => {
          const other = (await manager.listImages(call)).find(({ externalId }) => externalId !== id);
          return manager.deleteImage(other?.externalId ?? id, call);
        },
      }),
  },
  {
    name: 'deletes files during their upload to free disk space',
    rule: 'S10',
    files: (files) =>
      overlay(files, {
        freeBytes: async () => {
          for (const build of await files.list()) await files.remove(build);
          return files.freeBytes();
        },
      }),
  },
  {
    name: 'abandons an upload after its first failure',
    rule: 'L6',
    manager: (manager: ImageManager): ImageManager => {
      const failed = new Set<string>();
      return overlay(manager, {
        uploadImage: async (upload) => {
          if (failed.has(upload.image)) throw new Error('not again');
          failed.add(upload.image);
          throw new Error('the first time');
        },
      });
    },
  },
  {
    name: 'uploads to all providers sequentially',
    rule: 'L6',
    manager: oneAfterAnother(),
  },
  {
    name: 'regards every image that was ever listed as present',
    rule: 'L6',
    firstSeed: 29,
    manager: (manager: ImageManager): ImageManager => {
      const everListed = new Map<ExternalId, ListedImage>();
      return overlay(manager, {
        listImages: async (call) => {
          for (const image of await manager.listImages(call)) everListed.set(image.externalId, image);
          return [...everListed.values()];
        },
      });
    },
  },
  {
    name: 'never builds again after the disk was full',
    rule: 'L6',
    firstSeed: 35,
    files: (files: DiskImageFiles): DiskImageFiles => {
      let wasFull = false;
      return overlay(files, {
        freeBytes: async () => {
          wasFull ||= (await files.freeBytes()) === 0;
          return wasFull ? 0 : files.freeBytes();
        },
      });
    },
  },
  {
    name: 'uploads builds without their boot test',
    rule: 'S21',
    withTests: true,
    site: (site) => ({
      ...site,
      images: Object.fromEntries(
        Object.entries(site.images).map(([name, { bootTest: _test, ...image }]) => [name, image]),
      ),
    }),
  },
  {
    name: 'uploads a rejected build again if its image has disappeared',
    rule: 'S22',
    withTests: true,
    store: (store) =>
      withImages(store, (images) => ({
        *uploads(query): Iterable<ImageUpload> {
          for (const upload of images.uploads(query)) {
            const isRejected = upload.review?.stage === 'rejected';
            if (query.build === undefined || !isRejected) yield upload;
          }
        },
      })),
  },
  {
    name: 'keeps the newest uploads, whatever their stages are',
    rule: 'S23',
    withTests: true,
    store: (store) =>
      withImages(store, (images) => ({
        *uploads(query): Iterable<ImageUpload> {
          for (const { review: _review, ...upload } of images.uploads(query)) yield upload;
        },
      })),
  },
  {
    name: 'does not delete files of a failed build',
    rule: 'L6',
    files: (files: DiskImageFiles) => overlay(files, { remove: async () => undefined, list: async () => [] }),
  },
];

function withImages(
  store: Parameters<NonNullable<Mutation['store']>>[0],
  change: (images: ImageStore) => Partial<ImageStore>,
): typeof store {
  const images = overlay(store.images, change(store.images));
  return new Proxy(store, {
    get: (target, name): unknown => {
      if (name === 'images') return images;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (...args: unknown[]): unknown => Reflect.apply(value, target, args) : value;
    },
  });
}

/** Returns one queue for all providers of a builder. */
function oneAfterAnother(): NonNullable<Mutation['manager']> {
  let last: Promise<unknown> = Promise.resolve();
  return (manager) =>
    overlay(manager, {
      uploadImage: (upload: ImageUploadRequest) => {
        const result = last.then(() => manager.uploadImage(upload));
        last = result.catch(() => undefined);
        return result;
      },
    });
}
