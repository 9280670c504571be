/**
 * The records of images as one JSON object, path to data, for backups and for restoring them on another ensemble:
 * builds, uploads, pauses, and any other znode with data. The format is that of the Python Nodepool's
 * `export-image-data`.
 */

import { isZooKeeperError, type CallOptions, type TransactionOp, type ZooKeeper } from '@nodepool/zookeeper';
import { isJsonObject } from '@nodepool/core';
import { ImageDataError } from '../errors.js';
import { bytesOf } from '../codec/codec.js';
import { IMAGES_ROOT, buildPath, buildsPath, imagePath, placeOfImage, uploadsPath } from '../paths.js';
import { checkTransactionSize } from '../commit/transaction-size.js';
import { znodesBelow } from '../znodes-below.js';

/** Text of each record by its path. */
export type ImageData = ReadonlyMap<string, string>;

/** A build and its uploads, which are restored together. */
interface BuildData {
  readonly image: string;
  readonly path: string;
  text: string | undefined;
  /** Uploads by the path of their parent: text by id. */
  readonly uploads: Map<string, Map<string, string>>;
}

/** Names that no znode can have. */
const UNUSABLE = /^$|^\.{1,2}$|\0/;
const SEQUENCE = /^\d{10}$/;
/** Limit of upload ids and attempts. Restoring a higher one would take minutes; no real build reaches it. */
const MAX_SEQUENCE = 1_000_000;
/** Limit of operations in one transaction. A server accepts about a megabyte; the exact size is checked again. */
const MAX_OPS = 2000;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Exports all records of images, without locks and build requests. Reads the server and no cache. Rejects with
 * `ImageDataError` if a record is not text.
 */
export async function exportImageData(zooKeeper: ZooKeeper, options?: CallOptions): Promise<ImageData> {
  const data = new Map<string, string>();
  for (const path of (await znodesBelow(zooKeeper, IMAGES_ROOT, options)).filter((each) => !isLock(each)).sort()) {
    try {
      const found = await zooKeeper.get(path, options);
      if (!isKept(path, found.data.byteLength, found.stat.ephemeralOwner)) continue;
      data.set(path, utf8.decode(found.data));
    } catch (error) {
      if (isZooKeeperError(error, 'no-node')) continue;
      if (!(error instanceof TypeError)) throw error;
      throw new ImageDataError(`${path} is not text, so it cannot be exported; remove it, or repair it by hand`, error);
    }
  }
  return data;
}

/** Parses the output of `export-image-data`. Throws `ImageDataError`, naming every invalid entry. */
export function parseImageData(text: string): ImageData {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw new ImageDataError('it is not JSON; expected the output of export-image-data', error);
  }
  if (!isJsonObject(parsed)) throw new ImageDataError('expected a JSON object: path of a record to its text');
  const data = new Map<string, string>();
  const problems: string[] = [];
  for (const [path, value] of Object.entries(parsed)) {
    const problem = problemOf(path, value, parsed);
    if (problem !== undefined) problems.push(`${path}: ${problem}`);
    else if (typeof value === 'string') data.set(path, value);
  }
  if (problems.length > 0) throw new ImageDataError(`nothing can be imported:\n  ${problems.join('\n  ')}`);
  return data;
}

/**
 * Creates the missing records and resolves with their paths; existing records with the same text stay unchanged.
 * Rejects with `ImageDataError`, changing nothing, if one exists with another text. Each build is restored with its
 * uploads in one transaction, and ids of later uploads do not collide with the restored ones.
 */
export async function importImageData(
  zooKeeper: ZooKeeper,
  data: ImageData,
  options?: CallOptions,
): Promise<readonly string[]> {
  const present = await existingRecords(zooKeeper, data, options);
  const different = [...present].filter(([path, text]) => text !== '' && text !== data.get(path));
  if (different.length > 0) {
    const paths = different.map(([path]) => path).join('\n  ');
    throw new ImageDataError(`nothing was imported: these records already exist with other contents:\n  ${paths}`);
  }
  const missing = new Map([...data].filter(([path, text]) => present.get(path) !== text));
  for (const build of buildsOf(missing)) await restore(zooKeeper, build, present, options);
  for (const [path, text] of missing) if (!isRecord(path)) await restoreOther(zooKeeper, path, text, options);
  return [...missing.keys()];
}

function isRecord(path: string): boolean {
  const kind = placeOfImage(path)?.kind;
  return kind === 'build' || kind === 'upload';
}

/** Returns true if a path is a lock or below one. */
function isLock(path: string): boolean {
  return !isRecord(path) && path.slice(IMAGES_ROOT.length).split('/').slice(2).includes('lock');
}

/** Returns true if a znode is exported: any persistent znode with data, such as a record or a pause. */
function isKept(path: string, bytes: number, ephemeralOwner: bigint): boolean {
  if (isRecord(path) || placeOfImage(path)?.kind === 'pause') return true;
  return bytes > 0 && ephemeralOwner === 0n;
}

/** Returns the reason why an entry cannot be imported. */
function problemOf(path: string, value: unknown, all: object): string | undefined {
  const names = path.split('/').slice(1);
  if (!path.startsWith(`${IMAGES_ROOT}/`) || names.some((name) => UNUSABLE.test(name))) {
    return `is not the path of a znode below ${IMAGES_ROOT}`;
  }
  if (isLock(path)) return 'is a lock, which its owner creates again';
  if (typeof value !== 'string') return 'its value is not a text';
  const [, , image = '', builds, build, ...below] = names;
  if (builds !== 'builds' || build === undefined || below.length === 0) return undefined;
  const place = placeOfImage(path);
  if (place?.kind === 'upload' && (!SEQUENCE.test(place.id) || Number(place.id) > MAX_SEQUENCE)) {
    return `its last name is not the number of an upload (ten digits, at most ${MAX_SEQUENCE})`;
  }
  return Object.hasOwn(all, buildPath(image, build)) ? undefined : 'the record of its build is missing';
}

async function existingRecords(
  zooKeeper: ZooKeeper,
  data: ImageData,
  options?: CallOptions,
): Promise<ReadonlyMap<string, string>> {
  const existing = new Map<string, string>();
  for (const path of data.keys()) {
    try {
      existing.set(path, new TextDecoder().decode((await zooKeeper.get(path, options)).data));
    } catch (error) {
      if (!isZooKeeperError(error, 'no-node')) throw error;
    }
  }
  return existing;
}

function buildsOf(data: ImageData): Iterable<BuildData> {
  const builds = new Map<string, BuildData>();
  for (const [path, text] of data) {
    const place = placeOfImage(path);
    if (place?.kind !== 'build' && place?.kind !== 'upload') continue;
    const of = buildPath(place.image, place.kind === 'build' ? place.id : place.build);
    let build = builds.get(of);
    if (build === undefined) {
      build = { image: place.image, path: of, text: undefined, uploads: new Map() };
      builds.set(of, build);
    }
    if (place.kind === 'build') build.text = text;
    else {
      const parent = uploadsPath(place.image, place.build, place.provider);
      const uploads = build.uploads.get(parent) ?? new Map<string, string>();
      build.uploads.set(parent, uploads.set(place.id, text));
    }
  }
  return builds.values();
}

/**
 * Restores a build and its uploads. A build that needs several transactions has no content until the last one, which
 * creates its uploads: it is unused until then, and an interrupted import can be repeated.
 */
async function restore(
  zooKeeper: ZooKeeper,
  build: BuildData,
  present: ReadonlyMap<string, string>,
  options?: CallOptions,
): Promise<void> {
  for (const parent of [imagePath(build.image), buildsPath(build.image)]) await make(zooKeeper, parent, options);
  const first: TransactionOp[] = [];
  if (!present.has(build.path)) first.push({ type: 'create', path: build.path });
  const parents = new Set([...build.uploads.keys()].flatMap((path) => parentsBetween(build.path, path)));
  for (const path of parents) {
    if ((await zooKeeper.exists(path, options)) === undefined) first.push({ type: 'create', path });
  }
  for (const [parent, uploads] of build.uploads) {
    first.push(...(await sequenceOps(zooKeeper, parent, uploads, options)));
  }
  const last: TransactionOp[] = [];
  if (build.text !== undefined) last.push({ type: 'set', path: build.path, data: bytesOf(build.text) });
  for (const [parent, uploads] of build.uploads) {
    for (const [id, text] of uploads) last.push({ type: 'create', path: `${parent}/${id}`, data: bytesOf(text) });
  }
  while (first.length + last.length > MAX_OPS && first.length > 0) {
    await apply(zooKeeper, first.splice(0, MAX_OPS), options);
  }
  await apply(zooKeeper, [...first, ...last], options);
}

/** Restores a znode that is not a record of a build or an upload, such as a pause or an unknown one. */
async function restoreOther(zooKeeper: ZooKeeper, path: string, text: string, options?: CallOptions): Promise<void> {
  for (const parent of parentsBetween(IMAGES_ROOT, path)) await make(zooKeeper, parent, options);
  await zooKeeper.set(path, bytesOf(text), options);
}

async function apply(zooKeeper: ZooKeeper, ops: readonly TransactionOp[], options?: CallOptions): Promise<void> {
  checkTransactionSize(ops);
  await zooKeeper.transaction(ops, options);
}

/** Returns a path and its parents below `top`, parents first. */
function parentsBetween(top: string, path: string): string[] {
  const names = path.slice(top.length + 1).split('/');
  return names.map((_name, index) => `${top}/${names.slice(0, index + 1).join('/')}`);
}

/**
 * Returns operations that advance the sequence of the parent past the highest id. A server derives the next number from
 * the number of znodes that were created below the parent. The operations therefore create and delete that many znodes,
 * with the name of the lock, which no program treats as an upload.
 */
async function sequenceOps(
  zooKeeper: ZooKeeper,
  parent: string,
  uploads: ReadonlyMap<string, string>,
  options?: CallOptions,
): Promise<readonly TransactionOp[]> {
  const highest = Math.max(...[...uploads.keys()].map(Number));
  const path = `${parent}/lock`;
  const create: TransactionOp = { type: 'create', path };
  const remove: TransactionOp = { type: 'delete', path };
  const isThere = (await zooKeeper.exists(path, options)) !== undefined;
  const pair: readonly TransactionOp[] = isThere ? [remove, create] : [create, remove];
  return Array.from({ length: highest + 1 }).flatMap(() => pair);
}

async function make(zooKeeper: ZooKeeper, path: string, options?: CallOptions): Promise<void> {
  try {
    await zooKeeper.create(path, undefined, options);
  } catch (error) {
    if (!isZooKeeperError(error, 'node-exists')) throw error;
  }
}
