import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExternalId, ImageManager, ImageTags, ImageUploadRequest, ListedImage } from '@nodepool/core';
import { expectEqual } from '../expectations.js';
import type { ProviderHarness } from '../provider-harness.js';
import { imageTags, imageUpload } from '../requests.js';
import type { RuleGroup, Rule } from '../rule.js';
import type { Ability } from '../driver-fixture.js';
import type { RuleContext } from '../rule-context.js';
import { watch } from '../watched.js';

/** File size in bytes: more than a stream reads at once, so that progress is reported. */
const FILE_BYTES = 512 * 1024;
const UPLOAD_TIMEOUT_MS = 600_000;
/** Time in which the cloud processes an image (ms). */
const PROCESSING_MS = 1_800_000;
/** Longest time between two progress reports (ms): a third of the default `image-upload-idle-timeout`. */
const MAX_SILENCE_MS = 300_000;

export const images: RuleGroup = {
  title: 'Images',
  text: 'For drivers with an `ImageManager`.',
  rules: [
    imageRule({
      id: 'image.upload',
      title: '`uploadImage` resolves when the image is usable and listed with all `ImageTags`',
      text:
        '`uploadImage` resolves with the external id once the cloud has processed the image. The image has all ' +
        'tags of `ImageTags`, and is listed with them and its name.',
      check: async ({ harness, images: manager }, file) => {
        const upload = uploadOf(harness, file);
        const externalId = await harness.finish(manager.uploadImage(upload), 'the upload');
        const listed = await findImage(harness, manager, externalId);
        assert.ok(listed !== undefined, 'an uploaded image is not in the list');
        expectEqual(listed.ready, true, '`ready` of an uploaded image');
        expectEqual(listed.name, upload.externalName, 'the name of an uploaded image');
        for (const [tag, value] of Object.entries(upload.tags))
          expectEqual(listed.tags[tag], value, `the tag ${tag} of an uploaded image`);
      },
    }),
    imageRule({
      id: 'image.streamed',
      title: 'the file is streamed, and `progress` rises to its size',
      text:
        'The driver calls `progress` several times, with a number of bytes that never decreases and reaches the size ' +
        'of the file. So operators see that a long upload continues. The driver never reads the whole file into ' +
        'memory, because the file may be larger than the memory.',
      check: async ({ harness, images: manager }, file) => {
        const size = contentFor(harness).length;
        const reports: { sent: number; total: number }[] = [];
        const progress = (sent: number, total: number): void => {
          reports.push({ sent, total });
        };
        await harness.finish(manager.uploadImage({ ...uploadOf(harness, file), progress }), 'the upload');
        assert.ok(
          reports.every(({ total }) => total === size),
          `the reported size of a file of ${size} bytes is ${reports[0]?.total ?? 0}`,
        );
        const sent = reports.map((each) => each.sent);
        expectEqual(
          sent,
          sent.toSorted((a, b) => a - b),
          'the reported progress in bytes, in order',
        );
        expectEqual(sent.at(-1), size, 'the last reported number of bytes');
        assert.ok(
          sent.some((bytes) => bytes > 0 && bytes < size),
          'the progress was reported at the end only',
        );
      },
    }),
    imageRule({
      id: 'image.progress-repeated',
      since: '1.1',
      needs: ['image-times'],
      title: '`progress` is repeated at least every five minutes while the cloud processes the image, not by a timer',
      text:
        'The builder aborts an upload without progress after `image-upload-idle-timeout`, by default 15 minutes. ' +
        'After the last byte, clouds may import, convert and replicate an image for longer than that. A driver ' +
        'that waits for this calls `progress` with the same numbers after each answer of the cloud, at least ' +
        'every five minutes. It does not call it from a timer, because the limit must detect a cloud that has ' +
        'stopped answering.',
      check: async ({ harness, images: manager }, file) => {
        await harness.able('setImageTime')(PROCESSING_MS);
        const { clock } = harness.cloud.time;
        let last = clock.monotonic();
        let longest = 0;
        const progress = (): void => {
          longest = Math.max(longest, clock.monotonic() - last);
          last = clock.monotonic();
        };
        const upload = { ...uploadOf(harness, file), ...harness.call(2 * PROCESSING_MS), progress };
        const began = last;
        await harness.endOf(watch(manager.uploadImage(upload)), 'the upload', 2 * PROCESSING_MS);
        const took = clock.monotonic() - began;
        assert.ok(took >= PROCESSING_MS, `the upload ended after ${took} ms, before the cloud had processed the image`);
        progress();
        assert.ok(
          longest <= MAX_SILENCE_MS,
          `the upload did not call \`progress\` for ${Math.round(longest / 1000)} s while the cloud processed the image; the builder aborts such an upload`,
        );
      },
    }),
    imageRule({
      id: 'image.delete',
      title: 'deleting a deleted image succeeds',
      text:
        '`deleteImage` resolves once the image does not exist, including an image that never existed. A deletion ' +
        'that is repeated after a restart must not fail.',
      check: async ({ harness, images: manager }, file) => {
        const externalId = await harness.finish(manager.uploadImage(uploadOf(harness, file)), 'the upload');
        await harness.finish(manager.deleteImage(externalId, harness.call()), 'the deletion of an image');
        expectEqual(
          await findImage(harness, manager, externalId),
          undefined,
          'an image that was deleted is in the list',
        );
        await harness.finish(manager.deleteImage(externalId, harness.call()), 'the second deletion of an image');
      },
    }),
    imageRule({
      id: 'image.list',
      title: '`listImages` returns the images of all providers with Nodepool’s tags',
      text:
        'The listing of a provider also contains images with the tags of another provider. The builder needs it to ' +
        'find the images of providers that were removed from the configuration.',
      check: async ({ harness, images: manager }, file) => {
        const first = await harness.finish(manager.uploadImage(uploadOf(harness, file)), 'the first upload');
        const change = { nodepool_upload_id: '0000000002', nodepool_provider_name: 'another-provider' };
        const other = await harness.finish(manager.uploadImage(uploadOf(harness, file, change)), 'the second upload');
        for (const id of [first, other])
          assert.ok(await findImage(harness, manager, id), `image ${JSON.stringify(id)} is not in the list`);
      },
    }),
    imageRule({
      id: 'image.upload-refused',
      needs: ['fault:upload:refuse'],
      title: 'a failed upload rejects and leaves nothing',
      text: 'The builder retries with a new upload. A failed upload must not leave an unused image of many gigabytes.',
      check: async ({ harness, images: manager }, file) => {
        await harness.plan('upload', 'refuse');
        const upload = manager.uploadImage(uploadOf(harness, file));
        await harness.failureOf(upload, 'an upload that met an internal error of the cloud', 'transient', 'timeout');
        expectEqual(await listAll(harness, manager), [], 'images after an upload that failed');
      },
    }),
    imageRule({
      id: 'image.upload-aborted',
      needs: ['fault:upload:hang'],
      title: 'an upload ends when its signal aborts, and leaves nothing',
      text:
        'A builder can be stopped during an upload. No framework surrounds the image manager, so it handles ' +
        'signal and deadline itself.',
      check: async ({ harness, images: manager }, file) => {
        await harness.plan('upload', 'hang');
        const controller = new AbortController();
        const upload = manager.uploadImage({ ...uploadOf(harness, file), signal: controller.signal });
        upload.catch(() => undefined);
        await harness.pass(1000);
        const began = harness.cloud.time.clock.monotonic();
        controller.abort(new Error('it was aborted by the test'));
        await harness.failureOf(upload, 'an upload that was aborted', 'aborted');
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(took <= 60_000, `the driver ignores abort: an upload ended ${took} ms after its signal aborted`);
        expectEqual(await listAll(harness, manager), [], 'images after an upload that was aborted');
      },
    }),
    imageRule({
      id: 'image.upload-deadline',
      needs: ['fault:upload:hang'],
      title: 'an upload without an answer rejects with `TimeoutError` at its deadline',
      text: 'It rejects with `TimeoutError`. A cloud that does not answer must not occupy an upload worker forever.',
      check: async ({ harness, images: manager }, file) => {
        await harness.plan('upload', 'hang');
        const upload = { ...uploadOf(harness, file), ...harness.call(10_000) };
        const began = harness.cloud.time.clock.monotonic();
        await harness.failureOf(manager.uploadImage(upload), 'an upload without an answer', 'timeout');
        const took = harness.cloud.time.clock.monotonic() - began;
        assert.ok(
          took <= 70_000,
          `the driver ignores the deadline: an upload with a deadline in 10000 ms ended after ${took} ms`,
        );
      },
    }),
    imageRule({
      id: 'image.checksum',
      needs: ['image-checksums'],
      title: 'a file that differs from the built one does not become an image',
      text:
        'The builder passes the checksums of the built file. The cloud verifies them, or the driver compares them ' +
        'with those that the cloud has computed, so that no node is created from a damaged image.',
      check: async ({ harness, images: manager }, file) => {
        const wrong = createHash('sha256').update('another file').digest('hex');
        const md5 = createHash('md5').update('another file').digest('hex');
        await harness.failureOf(
          manager.uploadImage({ ...uploadOf(harness, file), sha256: wrong, md5 }),
          'an upload with a wrong checksum',
        );
        const usable = (await listAll(harness, manager)).filter(({ ready }) => ready);
        expectEqual(usable, [], 'images that can be used after an upload with a wrong checksum');
      },
    }),
    imageRule({
      id: 'image.launch',
      needs: ['image-labels'],
      title: 'an instance has the image `imageExternalId`; a missing one is `configuration` or `not-found`',
      text:
        '`NodeLaunch.imageExternalId` is the newest upload of the label’s disk image, and the instance is created ' +
        'from it. If the image does not exist, the launch fails with `configuration` or `not-found`.',
      check: async ({ harness, images: manager }, file) => {
        const imageExternalId = await harness.finish(manager.uploadImage(uploadOf(harness, file)), 'the upload');
        await harness.launched(harness.node(), { imageExternalId, ...harness.able('imageLabel') });
        await harness
          .finish(manager.deleteImage(imageExternalId, harness.call()), 'the deletion of the image')
          .catch(() => undefined);
        const node = harness.node();
        const launch = harness.launch(node, { imageExternalId: 'no-such-image', ...harness.able('imageLabel') });
        await harness.failureOf(launch, 'a launch from an image that does not exist', 'configuration', 'not-found');
      },
    }),
  ],
};

interface Managed {
  readonly harness: ProviderHarness;
  readonly images: ImageManager;
}

interface ImageRule {
  readonly id: string;
  /** Default: 1.0. */
  readonly since?: string;
  readonly title: string;
  readonly text: string;
  readonly needs?: readonly Ability[];
  readonly check: (managed: Managed, file: string) => Promise<void>;
}

/** Returns an image rule. Its check receives a started provider and a file to upload. */
export function imageRule({ since = '1.0', needs = [], check, ...texts }: ImageRule): Rule {
  const withFile = async (context: RuleContext): Promise<void> => {
    const harness = await context.start();
    const manager = harness.provider.images;
    assert.ok(manager !== undefined, 'the test cloud can do "images", and the provider has none');
    const folder = await mkdtemp(join(tmpdir(), 'driver-kit-'));
    try {
      const file = join(folder, 'image.raw');
      await writeFile(file, contentFor(harness));
      await check({ harness, images: manager }, file);
    } finally {
      await rm(folder, { recursive: true });
    }
  };
  return { ...texts, since, needs: ['images', ...needs], check: withFile };
}

function contentFor({ cloud }: ProviderHarness): Buffer {
  return cloud.imageContent ?? Buffer.alloc(FILE_BYTES, 'not much of an image\n');
}

/** Returns an upload with the usual name and tags, except for the tags in `difference`. */
export function uploadOf(
  harness: ProviderHarness,
  file: string,
  difference: Partial<ImageTags> = {},
): ImageUploadRequest {
  const { config } = harness.process;
  const data = contentFor(harness);
  return imageUpload(config, harness.call(UPLOAD_TIMEOUT_MS), file, {
    md5: createHash('md5').update(data).digest('hex'),
    sha256: createHash('sha256').update(data).digest('hex'),
    tags: { ...imageTags(config), ...difference },
  });
}

export function listAll(harness: ProviderHarness, manager: ImageManager): Promise<readonly ListedImage[]> {
  return harness.finish(manager.listImages(harness.call()), 'the list of images');
}

export async function findImage(
  harness: ProviderHarness,
  manager: ImageManager,
  externalId: ExternalId,
): Promise<ListedImage | undefined> {
  const wanted = JSON.stringify(externalId);
  return (await listAll(harness, manager)).find((image) => JSON.stringify(image.externalId) === wanted);
}
