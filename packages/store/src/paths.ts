/** Where the records are, and what a path names. Facts of the wire protocol: other programs use the same paths. */

import type { ComponentKind } from './component.js';
import { NODEPOOL_ROOT } from './api.js';

export const NODES_ROOT = `${NODEPOOL_ROOT}/nodes`;
export const REQUESTS_ROOT = `${NODEPOOL_ROOT}/requests`;
export const REQUEST_LOCKS_ROOT = `${NODEPOOL_ROOT}/requests-lock`;
export const IMAGES_ROOT = `${NODEPOOL_ROOT}/images`;
export const COMPONENTS_ROOT = `${NODEPOOL_ROOT}/components`;
/** The id of the installation. */
export const INSTALLATION_PATH = `${NODEPOOL_ROOT}/installation`;
export const ELECTIONS_ROOT = `${NODEPOOL_ROOT}/elections`;
/** Its winner reports the global statistics. */
export const STATS_ELECTION_PATH = `${ELECTIONS_ROOT}/stats`;

/** What a store makes when it starts, parents first. */
export const ROOTS: readonly string[] = [
  NODEPOOL_ROOT,
  NODES_ROOT,
  REQUESTS_ROOT,
  REQUEST_LOCKS_ROOT,
  IMAGES_ROOT,
  COMPONENTS_ROOT,
  ELECTIONS_ROOT,
  componentsPath('launcher'),
  componentsPath('pool'),
  componentsPath('builder'),
];

/** A node's record is created as this, plus the sequence that the server adds. */
export const NEW_NODE_PATH = `${NODES_ROOT}/`;

export function nodePath(id: string): string {
  return `${NODES_ROOT}/${id}`;
}

export function nodeLockPath(id: string): string {
  return `${NODES_ROOT}/${id}/lock`;
}

export function requestPath(id: string): string {
  return `${REQUESTS_ROOT}/${id}`;
}

/** A request is created as this, plus the sequence. */
export function newRequestPath(priority: number): string {
  return `${REQUESTS_ROOT}/${String(priority).padStart(3, '0')}-`;
}

/** Not below the request: requestors delete requests without looking. */
export function requestLockPath(id: string): string {
  return `${REQUEST_LOCKS_ROOT}/${id}`;
}

export function componentsPath(kind: ComponentKind): string {
  return `${COMPONENTS_ROOT}/${kind}`;
}

export function buildsPath(image: string): string {
  return `${IMAGES_ROOT}/${image}/builds`;
}

export function buildPath(image: string, build: string): string {
  return `${buildsPath(image)}/${build}`;
}

export function uploadsPath(image: string, build: string, provider: string): string {
  return `${buildPath(image, build)}/providers/${provider}/images`;
}

export function uploadPath(image: string, build: string, provider: string, upload: string): string {
  return `${uploadsPath(image, build, provider)}/${upload}`;
}

/** Lock for building the image. */
export function buildingLockPath(image: string): string {
  return `${buildsPath(image)}/lock`;
}

/** Lock for cleaning a build up. */
export function buildLockPath(image: string, build: string): string {
  return `${buildPath(image, build)}/lock`;
}

/** Lock for uploading a build to a provider. */
export function uploadingLockPath(image: string, build: string, provider: string): string {
  return `${uploadsPath(image, build, provider)}/lock`;
}

/** Lock for deleting an upload. */
export function uploadLockPath(image: string, build: string, provider: string, upload: string): string {
  return `${uploadPath(image, build, provider, upload)}/lock`;
}

export function imagePath(image: string): string {
  return `${IMAGES_ROOT}/${image}`;
}

export function imagePausePath(image: string): string {
  return `${IMAGES_ROOT}/${image}/pause`;
}

export function buildRequestPath(image: string): string {
  return `${IMAGES_ROOT}/${image}/request-build`;
}

/** The last failed build of an image. Ours: other programs ignore it. */
export function lastFailurePath(image: string): string {
  return `${IMAGES_ROOT}/${image}/last-failure`;
}

/** Last name of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** What a path among the locked records names. */
export type RecordPlace =
  | { readonly kind: 'record'; readonly id: string }
  /** The lock directory of the record. */
  | { readonly kind: 'lock'; readonly id: string }
  | { readonly kind: 'contender'; readonly id: string }
  /** A child of the lock directory that is no contender. */
  | { readonly kind: 'foreign'; readonly id: string };

/** What a path below `/nodepool/nodes` names; undefined: nothing that we know. */
export function placeOfNode(path: string): RecordPlace | undefined {
  const start = NODES_ROOT.length + 1;
  if (path.length <= start) return undefined;
  const end = path.indexOf('/', start);
  if (end === -1) return { kind: 'record', id: path.slice(start) };
  if (!path.startsWith('/lock', end)) return undefined;
  const id = path.slice(start, end);
  const rest = end + '/lock'.length;
  if (path.length === rest) return { kind: 'lock', id };
  return path[rest] === '/' ? childOfLock(path, rest, id) : undefined;
}

/** `end`: where the path of the lock directory ends. */
function childOfLock(path: string, end: number, id: string): RecordPlace | undefined {
  if (path.includes('/', end + 1)) return undefined;
  return { kind: isContender(path) ? 'contender' : 'foreign', id };
}

/** Id of the request that a path is the record of; undefined: of none. */
export function requestOf(path: string): string | undefined {
  const start = REQUESTS_ROOT.length + 1;
  return path.length > start && !path.includes('/', start) ? path.slice(start) : undefined;
}

/** What a path below `/nodepool/requests-lock` names; undefined: nothing that we know. */
export function placeOfRequestLock(path: string): RecordPlace | undefined {
  const start = REQUEST_LOCKS_ROOT.length + 1;
  if (path.length <= start) return undefined;
  const end = path.indexOf('/', start);
  if (end === -1) return { kind: 'lock', id: path.slice(start) };
  return childOfLock(path, end, path.slice(start, end));
}

/** What a path below `/nodepool/images` names. */
export type ImagePlace =
  | { readonly kind: 'image' | 'pause' | 'build-request' | 'last-failure'; readonly image: string }
  | { readonly kind: 'build'; readonly image: string; readonly id: string }
  /** Child of one of the locks of the image, foreign if it is no contender. `lock`: path of the lock directory. */
  | { readonly kind: 'contender' | 'foreign'; readonly image: string; readonly lock: string }
  | {
      readonly kind: 'upload';
      readonly image: string;
      readonly build: string;
      readonly provider: string;
      readonly id: string;
    };

/** The directory of a lock for building an image, of a build, for uploading a build, or of an upload. */
const IMAGE_LOCK = /^\/nodepool\/images\/[^/]+\/builds\/([^/]+\/(providers\/[^/]+\/images\/([^/]+\/)?)?)?lock$/;

/** Undefined: nothing that is remembered, e.g. the directory of a lock. */
export function placeOfImage(path: string): ImagePlace | undefined {
  const [image, second, id, third, provider, fourth, upload, ...more] = path.slice(IMAGES_ROOT.length + 1).split('/');
  if (image === undefined || image === '') return undefined;
  const parent = path.slice(0, path.lastIndexOf('/'));
  if (IMAGE_LOCK.test(parent)) return { kind: isContender(path) ? 'contender' : 'foreign', image, lock: parent };
  if (more.length > 0) return undefined;
  if (second === undefined) return { kind: 'image', image };
  if (id === undefined) {
    if (second === 'pause') return { kind: 'pause', image };
    if (second === 'last-failure') return { kind: 'last-failure', image };
    return second === 'request-build' ? { kind: 'build-request', image } : undefined;
  }
  if (second !== 'builds' || id === 'lock') return undefined;
  if (third === undefined) return { kind: 'build', image, id };
  if (third !== 'providers' || provider === undefined || fourth !== 'images') return undefined;
  return upload === undefined || upload === 'lock'
    ? undefined
    : { kind: 'upload', image, build: id, provider, id: upload };
}

/** Kind of the component that a path names; undefined: it names none. */
export function kindOfComponent<K extends string>(path: string, kinds: readonly K[]): K | undefined {
  const [kind, name, ...more] = path.slice(COMPONENTS_ROOT.length + 1).split('/');
  return name === undefined || more.length > 0 ? undefined : kinds.find((known) => known === kind);
}

/** As kazoo's lock recipe tells contenders from other children. */
function isContender(path: string): boolean {
  return path.includes('__lock__', path.lastIndexOf('/'));
}
