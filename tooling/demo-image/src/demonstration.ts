/**
 * The lifecycle of two images: both are built, uploaded and used, and the second is withdrawn. Rejects if a step fails.
 */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { nodePath, uploadPath } from '@nodepool/store';
import { type ImageBuild, type ImageUpload, systemClock } from '@nodepool/core';
import { FAKE_DIB_COMMAND } from '@nodepool/fake-dib';
import { noNodesLeft, type Narrator } from '@nodepool/harness';
import { openRequestor } from '@nodepool/requestor';
import { ImageWatch } from './image-watch.js';
import { buildLogDir, IMAGE, imagesDir, PROVIDER } from './site.js';
import type { DemoEnvironment } from './environment.js';

const BUILD_DEADLINE_MS = 45 * 60_000;
const UPLOAD_DEADLINE_MS = 30 * 60_000;
const NODE_DEADLINE_MS = 10 * 60_000;
const CLEAN_DEADLINE_MS = 5 * 60_000;
/** Interval between progress messages of a build (ms). */
const PROGRESS_INTERVAL_MS = 20_000;
const REQUESTOR = 'demonstration';

export interface ShowOptions {
  /** True if the first image is built with the stand-in. */
  readonly standIn: boolean;
  /** True if diskimage-builder also builds the second image, which takes as long as the first. */
  readonly secondReal: boolean;
}

export async function runDemonstration(
  environment: DemoEnvironment,
  options: ShowOptions,
  narrator: Narrator,
  interrupted: AbortSignal,
): Promise<void> {
  const images = new ImageWatch(environment.store, IMAGE, narrator);
  try {
    narrator.say(`1. ${IMAGE} has no build, so the builder creates one with ${programOf(options.standIn)}`);
    const first = await make(environment, images, [], narrator, interrupted);
    reportFiles(environment, first.build, narrator);
    narrator.text(await environment.nodepool('image-list'));

    narrator.say('2. a launcher creates a node from it');
    await environment.startLauncher(narrator, interrupted);
    await useNode(environment, first.upload, narrator, interrupted);

    const standIn = options.standIn || !options.secondReal;
    narrator.say(`3. a second build is requested; ${programOf(standIn)} creates it`);
    if (standIn && !options.standIn) await environment.changeBuilder({ dibCmd: FAKE_DIB_COMMAND });
    narrator.text(await environment.nodepool('image-build', IMAGE));
    const second = await make(environment, images, [first.build], narrator, interrupted);
    narrator.text(await environment.nodepool('dib-image-list'));
    await environment.changeBuilder({ pauseUploads: true });
    narrator.say('uploads are paused, because the builder would upload the next deleted image again');
    await useNode(environment, second.upload, narrator, interrupted);

    narrator.say('4. the newest upload is deleted, and the launcher uses the previous one');
    narrator.text(await deleteUpload(environment, second.upload));
    await useNode(environment, first.upload, narrator, interrupted);
    await images.until('the end of the upload', CLEAN_DEADLINE_MS, interrupted, () =>
      images.uploads.length === 1 ? true : undefined,
    );

    narrator.say('5. everything is cleaned up');
    await cleanUp(environment, images, narrator, interrupted);
  } finally {
    images.close();
  }
}

function programOf(standIn: boolean): string {
  return standIn ? 'the stand-in for disk-image-create' : 'disk-image-create';
}

/** Waits for a build and its upload, and reports the progress. */
async function make(
  environment: DemoEnvironment,
  images: ImageWatch,
  others: readonly ImageBuild[],
  narrator: Narrator,
  interrupted: AbortSignal,
): Promise<{ readonly build: ImageBuild; readonly upload: ImageUpload }> {
  const stopReporting = reportBuild(environment, narrator);
  try {
    const build = await environment.while('builds the image', BUILD_DEADLINE_MS, (signal) =>
      images.build(others, BUILD_DEADLINE_MS, AbortSignal.any([signal, interrupted])),
    );
    const upload = await environment.while('uploads the image', UPLOAD_DEADLINE_MS, (signal) =>
      images.upload(build, UPLOAD_DEADLINE_MS, AbortSignal.any([signal, interrupted])),
    );
    narrator.say(`in the cloud it is ${String(upload.external_name)}, ${JSON.stringify(upload.external_id)}`);
    return { build, upload };
  } finally {
    stopReporting();
  }
}

/** Prints the last line of the newest build log periodically. Returns a function that stops it. */
function reportBuild(environment: DemoEnvironment, narrator: Narrator): () => void {
  let said = '';
  const report = (): void => {
    const line = lastLine(buildLogDir(environment.folder));
    if (line !== undefined && line !== said) narrator.say(`  … ${line.slice(0, 110)}`);
    said = line ?? said;
    timer = systemClock.schedule(PROGRESS_INTERVAL_MS, report);
  };
  let timer = systemClock.schedule(PROGRESS_INTERVAL_MS, report);
  return () => timer.cancel();
}

function lastLine(folder: string): string | undefined {
  if (!existsSync(folder)) return undefined;
  const logs = readdirSync(folder).map((name) => join(folder, name));
  const newest = logs.sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs).at(-1);
  return newest === undefined ? undefined : readFileSync(newest, 'utf8').trimEnd().split('\n').at(-1);
}

function reportFiles(environment: DemoEnvironment, build: ImageBuild, narrator: Narrator): void {
  const folder = imagesDir(environment.folder);
  for (const name of readdirSync(folder)
    .filter((each) => each.includes(build.id))
    .sort()) {
    const { size } = statSync(join(folder, name));
    narrator.say(`  ${name}: ${size.toLocaleString('en')} bytes`);
  }
}

/** Requests a node, asserts that it was created from this upload, and returns it. */
async function useNode(
  environment: DemoEnvironment,
  { image, build, provider, id }: ImageUpload,
  narrator: Narrator,
  interrupted: AbortSignal,
): Promise<void> {
  const { zooKeeper } = environment;
  const requestor = openRequestor(zooKeeper, { name: REQUESTOR });
  try {
    await environment.while('serves a request', NODE_DEADLINE_MS, async (signal) => {
      const lease = await requestor.acquire({ labels: [IMAGE] }, { signal: AbortSignal.any([signal, interrupted]) });
      const [node] = lease.nodes;
      if (node === undefined) throw new Error('a request was fulfilled without a node');
      const record = JSON.parse(Buffer.from((await zooKeeper.get(nodePath(node.id))).data).toString()) as {
        readonly image_id: string;
        readonly external_id: string;
      };
      const { image_id: made, external_id: server } = record;
      narrator.say(`node ${node.id} is server ${server} at ${node.address}, created from ${made}`);
      await lease.return();
      const wanted = uploadPath(image, build, provider, id);
      if (made !== wanted) throw new Error(`node ${node.id} should have been created from ${wanted}`);
      await noNodesLeft(zooKeeper, AbortSignal.any([signal, interrupted]));
    });
  } finally {
    await requestor.close();
  }
}

function deleteUpload(environment: DemoEnvironment, { image, build, id }: ImageUpload): Promise<string> {
  const which = ['--provider', PROVIDER, '--image', image, '--build-id', build, '--upload-id', id];
  return environment.nodepool('image-delete', ...which);
}

/** Deletes all images, and asserts that nothing is left on the disk or in the cloud. */
async function cleanUp(
  environment: DemoEnvironment,
  images: ImageWatch,
  narrator: Narrator,
  interrupted: AbortSignal,
): Promise<void> {
  narrator.text(await environment.nodepool('image-pause', IMAGE));
  for (const { id } of images.builds) narrator.text(await environment.nodepool('dib-image-delete', `${IMAGE}-${id}`));
  await environment.while('deletes the builds', CLEAN_DEADLINE_MS, (signal) =>
    images.until('the end of the builds', CLEAN_DEADLINE_MS, AbortSignal.any([signal, interrupted]), () =>
      images.builds.length === 0 ? true : undefined,
    ),
  );
  const left = readdirSync(imagesDir(environment.folder)).filter((name) => name.startsWith(IMAGE));
  if (left.length > 0) throw new Error(`files of deleted builds are left: ${left.join(', ')}`);
  const aliens: unknown = JSON.parse(await environment.nodepool('alien-image-list', PROVIDER, '--format', 'json'));
  if (!Array.isArray(aliens) || aliens.length > 0)
    throw new Error(`images are left in the cloud: ${JSON.stringify(aliens)}`);
  narrator.say('nothing is left, neither on the disk nor in the cloud');
}
