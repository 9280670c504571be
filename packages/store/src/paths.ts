/** Paths of the records and their meaning. They are facts of the wire protocol, which other programs share. */

import type { ComponentKind } from './components/component.js';

/** Root of all znodes of Nodepool: `nodes/`, `requests/`, `requests-lock/`, `images/`, `components/` are below it. */
export const NODEPOOL_ROOT = '/nodepool';

export const NODES_ROOT = `${NODEPOOL_ROOT}/nodes`;
export const REQUESTS_ROOT = `${NODEPOOL_ROOT}/requests`;
export const REQUEST_LOCKS_ROOT = `${NODEPOOL_ROOT}/requests-lock`;
export const IMAGES_ROOT = `${NODEPOOL_ROOT}/images`;
export const COMPONENTS_ROOT = `${NODEPOOL_ROOT}/components`;
/** The id of the installation. */
export const INSTALLATION_PATH = `${NODEPOOL_ROOT}/installation`;
/**
 * Its children suspend deletions, see `installation/suspension-store.ts`: `installation`, or `provider-` and the name
 * of a provider. An extension: other programs ignore it.
 */
export const SUSPENSIONS_ROOT = `${NODEPOOL_ROOT}/suspensions`;
export const ELECTIONS_ROOT = `${NODEPOOL_ROOT}/elections`;
/**
 * Its children count the registrations of supplied nodes, one per provider, and the changes of an owner's requests. An
 * extension: other programs ignore it.
 */
const SUPPLY_ROOT = `${NODEPOOL_ROOT}/supply`;

/**
 * Its children are the labels whose demand is counted, see `demand/demand-store.ts`. An extension: other programs
 * ignore it.
 */
const DEMAND_ROOT = `${NODEPOOL_ROOT}/demand`;

const SLASH = 0x2f;

/** The names of contenders contain this, by the rule of kazoo's lock recipe. */
const CONTENDER = '__lock__';

/** The znodes that a store creates when it starts, parents first. */
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

/** A node's record is created with this prefix; the server appends the sequence. */
export const NEW_NODE_PATH = `${NODES_ROOT}/`;

export function nodePath(id: string): string {
  return `${NODES_ROOT}/${id}`;
}

export function nodeLockPath(id: string): string {
  return `${NODES_ROOT}/${id}/lock`;
}

/** Returns the path of the counter that changes with each registration of supplied nodes of the provider. */
export function supplyPath(provider: string): string {
  return `${SUPPLY_ROOT}/${encodeURIComponent(provider)}`;
}

/** Returns the path of the counter that changes with the set of the requestor's requests. */
export function requestorPath(requestor: string): string {
  return `${SUPPLY_ROOT}/requests-of-${encodeURIComponent(requestor)}`;
}

/** Returns the path of the label's demand. */
export function demandPath(label: string): string {
  return `${DEMAND_ROOT}/${encodedName(label)}`;
}

/** Returns a name of a znode for any text: escapes characters that such names must not have, or that have a meaning. */
export function encodedName(text: string): string {
  return /^\.+$/.test(text) ? text.replaceAll('.', '%2E') : encodeURIComponent(text);
}

export function requestPath(id: string): string {
  return `${REQUESTS_ROOT}/${id}`;
}

/** Returns the prefix of a new request's path; the server appends the sequence. */
export function newRequestPath(priority: number): string {
  return `${REQUESTS_ROOT}/${String(priority).padStart(3, '0')}-`;
}

/** Returns the path of a request's lock: not below the request, which requestors delete without a look at locks. */
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

/** Returns the path of the uploads of a build to the provider, their locks included. */
export function providerPath(image: string, build: string, provider: string): string {
  return `${buildPath(image, build)}/providers/${provider}`;
}

export function uploadsPath(image: string, build: string, provider: string): string {
  return `${providerPath(image, build, provider)}/images`;
}

export function uploadPath(image: string, build: string, provider: string, upload: string): string {
  return `${uploadsPath(image, build, provider)}/${upload}`;
}

/** Returns the path of the lock for building the image. */
export function buildingLockPath(image: string): string {
  return `${buildsPath(image)}/lock`;
}

/** Returns the path of the lock for cleaning up a build. */
export function buildLockPath(image: string, build: string): string {
  return `${buildPath(image, build)}/lock`;
}

/** Returns the path of the lock for uploading a build to a provider. */
export function uploadingLockPath(image: string, build: string, provider: string): string {
  return `${uploadsPath(image, build, provider)}/lock`;
}

/** Returns the path of the lock for deleting an upload. */
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

/** Returns the path of the last failed build of an image. An extension: other programs ignore it. */
export function lastFailurePath(image: string): string {
  return `${IMAGES_ROOT}/${image}/last-failure`;
}

/** Returns the last name of a path. */
export function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The meaning of a path among the locked records. */
export type RecordPlace =
  | { readonly kind: 'record'; readonly id: string }
  /** The lock directory of the record. */
  | { readonly kind: 'lock'; readonly id: string }
  | { readonly kind: 'contender'; readonly id: string }
  /** A child of the lock directory that is not a contender. */
  | { readonly kind: 'foreign'; readonly id: string };

/** Returns true if a path below `/nodepool/nodes` is a record's. */
export function isNodeRecord(path: string): boolean {
  const start = NODES_ROOT.length + 1;
  return path.length > start && !path.includes('/', start);
}

/** Returns the meaning of a path below `/nodepool/nodes`; undefined if it is unknown. */
export function placeOfNode(path: string): RecordPlace | undefined {
  const start = NODES_ROOT.length + 1;
  if (path.length <= start) return undefined;
  const end = path.indexOf('/', start);
  if (end === -1) return { kind: 'record', id: path.slice(start) };
  if (!path.startsWith('/lock', end)) return undefined;
  const id = path.slice(start, end);
  const rest = end + '/lock'.length;
  if (path.length === rest) return { kind: 'lock', id };
  return path.charCodeAt(rest) === SLASH ? childOfLock(path, rest, id) : undefined;
}

/** Returns the meaning of a child of a lock; `end` is the length of the path of the lock directory. */
function childOfLock(path: string, end: number, id: string): RecordPlace | undefined {
  if (path.includes('/', end + 1)) return undefined;
  return { kind: path.includes(CONTENDER, end) ? 'contender' : 'foreign', id };
}

/** Returns the id of the request whose record has this path; undefined for other paths. */
export function requestOf(path: string): string | undefined {
  const start = REQUESTS_ROOT.length + 1;
  return path.length > start && !path.includes('/', start) ? path.slice(start) : undefined;
}

/** Returns the meaning of a path below `/nodepool/requests-lock`; undefined if it is unknown. */
export function placeOfRequestLock(path: string): RecordPlace | undefined {
  const start = REQUEST_LOCKS_ROOT.length + 1;
  if (path.length <= start) return undefined;
  const end = path.indexOf('/', start);
  if (end === -1) return { kind: 'lock', id: path.slice(start) };
  return childOfLock(path, end, path.slice(start, end));
}

/** The meaning of a path below `/nodepool/images`. */
export type ImagePlace =
  | { readonly kind: 'image' | 'pause' | 'build-request' | 'last-failure'; readonly image: string }
  | { readonly kind: 'build'; readonly image: string; readonly id: string }
  /** A child of one of the locks of the image, foreign if it is not a contender. `lock`: path of the lock directory. */
  | { readonly kind: 'contender' | 'foreign'; readonly image: string; readonly lock: string }
  | {
      readonly kind: 'upload';
      readonly image: string;
      readonly build: string;
      readonly provider: string;
      readonly id: string;
    };

/** Matches the lock directories of building an image, of a build, of uploading a build, and of an upload. */
const IMAGE_LOCK = /^\/nodepool\/images\/[^/]+\/builds\/([^/]+\/(providers\/[^/]+\/images\/([^/]+\/)?)?)?lock$/;

/** Returns the meaning of a path; undefined for paths that are not cached, e.g. the directory of a lock. */
export function placeOfImage(path: string): ImagePlace | undefined {
  const [image, second, id, third, provider, fourth, upload, ...more] = path.slice(IMAGES_ROOT.length + 1).split('/');
  if (image === undefined || image === '') return undefined;
  const parent = path.slice(0, path.lastIndexOf('/'));
  if (IMAGE_LOCK.test(parent)) {
    return { kind: path.includes(CONTENDER, parent.length) ? 'contender' : 'foreign', image, lock: parent };
  }
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

/** Matches the directories of the locks of a build and of its uploads to a provider, and the znodes on the way. */
const BUILD_DIRECTORY = /^\/nodepool\/images\/[^/]+\/builds\/[^/]+\/(lock|providers(\/[^/]+(\/images(\/lock)?)?)?)$/;

/** Returns true if the path is that of a znode below a build that lock recipes create as a parent of contenders. */
export function isBuildDirectory(path: string): boolean {
  return BUILD_DIRECTORY.test(path);
}

/** Returns the kind of the component with this path; undefined if it is not a component's. */
export function kindOfComponent<K extends string>(path: string, kinds: readonly K[]): K | undefined {
  const [kind, name, ...more] = path.slice(COMPONENTS_ROOT.length + 1).split('/');
  return name === undefined || more.length > 0 ? undefined : kinds.find((known) => known === kind);
}
