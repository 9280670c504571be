/**
 * Finds the resources in a listing of a cloud that belong to no record. Launchers delete them as leaked, and operators
 * adopt or delete them.
 */

import { externalIdKey, type Node, type Resource } from '@nodepool/core';
import type { CallOptions, ZooKeeper } from '@nodepool/zookeeper';
import type { ImageStore } from '../images/image-store.js';
import type { NodeStore } from '../nodes/node-store.js';
import { uploadPath, uploadsPath } from '../paths.js';
import { childrenOf } from '../znodes-below.js';

/** A resource without a record, and the reason. */
export interface Unrecorded {
  readonly resource: Resource;
  readonly because: string;
}

/** Tags without which the owner of a resource is not certain, besides those that name its node or upload. */
const NODE_TAGS = ['nodepool_installation', 'nodepool_pool_name', 'nodepool_launch_attempt'] as const;
const UPLOAD_TAGS = ['nodepool_installation', 'nodepool_image_format'] as const;

/** Formats of the ids and names that launchers and builders write; resources with tags in other formats are skipped. */
const NODE_ID = /^[0-9]{10}$/;
const BUILD_ID = /^[0-9a-f]+$/;
const UPLOAD_ID = /^[0-9]{10}$/;
const IMAGE_NAME = /^(?!\.{1,2}$)[^/\0]+$/;

/** The records of nodes and uploads, and the client to read past their caches. */
interface Records {
  readonly zooKeeper: ZooKeeper;
  readonly nodes: NodeStore;
  readonly images: ImageStore;
}

/** Returns the tags that a resource of a node or upload lacks; without them, its owner is not certain. */
export function missingTags({ tags }: Resource): readonly string[] {
  const expected = tags.nodepool_node_id === undefined ? UPLOAD_TAGS : NODE_TAGS;
  return expected.filter((tag) => (tags[tag] ?? '') === '');
}

/**
 * Resolves with the resources of the provider that a fresh read assigns to no node and no upload. All must have the
 * tags of the provider, and must have been listed before the call.
 */
export async function unrecordedResources(
  store: Records,
  provider: string,
  resources: readonly Resource[],
  options: CallOptions,
): Promise<readonly Unrecorded[]> {
  const ofNodes = new Map<string, Resource[]>();
  const ofUploads: Resource[] = [];
  const ofBuilds: Resource[] = [];
  const shared = new Map<Resource, readonly Resource[]>();
  for (const listed of withoutSoleInstances(store.nodes, provider, resources)) {
    const claims = claimsOf(listed);
    if (claims.length > 1) shared.set(listed, claims);
    for (const resource of claims) {
      const { nodepool_node_id: nodeId, nodepool_upload_id: uploadId, nodepool_build_id: buildId } = resource.tags;
      if (nodeId !== undefined && !NODE_ID.test(nodeId)) continue;
      if (nodeId !== undefined) ofNodes.set(nodeId, [...(ofNodes.get(nodeId) ?? []), resource]);
      else if (uploadId !== undefined) ofUploads.push(resource);
      else if (buildId !== undefined) ofBuilds.push(resource);
    }
  }
  const found = [
    ...(await withoutNode(store, provider, ofNodes, options)),
    ...(await withoutUpload(store, provider, ofUploads, options)),
    ...(await withoutUploadOfBuild(store, provider, ofBuilds, options)),
  ];
  return joined(found, shared);
}

/** Omits, without a read, the instances of cached nodes, unless other resources of the same node are listed too. */
function withoutSoleInstances(nodes: NodeStore, provider: string, resources: readonly Resource[]): readonly Resource[] {
  const unclear = new Set<string | undefined>();
  for (const resource of resources) {
    const { tags, otherOwners = [] } = resource;
    if (otherOwners.length === 0 && isInstanceOf(nodes.get(tags.nodepool_node_id ?? '')?.node, provider, resource))
      continue;
    for (const { nodepool_node_id: id } of [tags, ...otherOwners]) unclear.add(id);
  }
  return unclear.size === 0 ? [] : resources.filter(({ tags }) => unclear.has(tags.nodepool_node_id));
}

function isInstanceOf(node: Node | undefined, provider: string, { externalId }: Resource): boolean {
  const id = node?.provider === provider ? node.external_id : null;
  return id !== null && externalIdKey(id) === externalIdKey(externalId);
}

/** Returns the resource once with the tags of each of its possible owners. */
function claimsOf(resource: Resource): readonly Resource[] {
  const { otherOwners = [], ...listed } = resource;
  return otherOwners.length === 0 ? [resource] : [listed, ...otherOwners.map((tags) => ({ ...listed, tags }))];
}

/** Returns the resources that none of their possible owners claims. */
function joined(
  found: readonly Unrecorded[],
  shared: ReadonlyMap<Resource, readonly Resource[]>,
): readonly Unrecorded[] {
  const unclaimed = new Map(found.map((each) => [each.resource, each]));
  const ofShared = [...shared].flatMap(([resource, claims]): Unrecorded[] => {
    const because = claims.map((claim) => unclaimed.get(claim)?.because);
    for (const claim of claims) unclaimed.delete(claim);
    const [first] = because;
    return first === undefined || because.includes(undefined) ? [] : [{ resource, because: first }];
  });
  return [...unclaimed.values(), ...ofShared];
}

async function withoutNode(
  store: Records,
  provider: string,
  ofNodes: ReadonlyMap<string, readonly Resource[]>,
  options: CallOptions,
): Promise<readonly Unrecorded[]> {
  if (ofNodes.size === 0) return [];
  const known = new Set(await store.nodes.readIds(options));
  const found: Unrecorded[] = [];
  const add = (resources: readonly Resource[], because: string): void => {
    for (const resource of resources) found.push({ resource, because });
  };
  for (const [nodeId, resources] of ofNodes) {
    if (!known.has(nodeId)) add(resources, 'its node has no record');
    else add(await duplicates(store, nodeId, resources, options), 'its node is from another launch attempt');
  }
  return found.length === 0 ? found : withoutNamed(await namedBy(store, provider, known, options), found);
}

/**
 * Omits the resources that a record names by their external id, e.g. instances that an operator has adopted, and other
 * resources of the same launch attempt, e.g. their volumes.
 */
function withoutNamed(named: ReadonlySet<string>, found: readonly Unrecorded[]): readonly Unrecorded[] {
  const isAdopted = ({ resource }: Unrecorded): boolean => named.has(externalIdKey(resource.externalId));
  const attempts = new Set(found.filter(isAdopted).map(({ resource }) => resource.tags.nodepool_launch_attempt));
  attempts.delete(undefined);
  return found.filter((each) => !isAdopted(each) && !attempts.has(each.resource.tags.nodepool_launch_attempt));
}

/**
 * Resolves with the keys of the external ids in the records of the provider. Reads the records of `ids` that the cache
 * lacks, because another process may just have adopted an instance.
 */
async function namedBy(
  { nodes }: Records,
  provider: string,
  ids: ReadonlySet<string>,
  options: CallOptions,
): Promise<ReadonlySet<string>> {
  await nodes.refresh();
  const named = new Set<string>();
  const entries = [...nodes.ofProvider(provider)];
  for (const id of ids) {
    const fresh = nodes.get(id) === undefined ? await nodes.read(id, options) : undefined;
    if (fresh?.node.provider === provider) entries.push(fresh);
  }
  for (const { node } of entries) if (node.external_id !== null) named.add(externalIdKey(node.external_id));
  return named;
}

/**
 * Returns the resources that were created for the node but do not belong to it. Reads the node afresh only if the cache
 * shows such resources.
 */
async function duplicates(
  { nodes }: Records,
  nodeId: string,
  resources: readonly Resource[],
  options: CallOptions,
): Promise<readonly Resource[]> {
  const cached = nodes.get(nodeId);
  if (cached === undefined || foreignTo(cached.node, resources).length === 0) return [];
  const fresh = await nodes.read(nodeId, options);
  return fresh === undefined ? resources : foreignTo(fresh.node, resources);
}

/**
 * Returns the resources that another launch attempt of the node certainly created. Resources without an attempt tag,
 * and those of another pool, which no attempt of the node created, are skipped.
 */
function foreignTo(node: Node, resources: readonly Resource[]): readonly Resource[] {
  const id = node.external_id === null ? undefined : externalIdKey(node.external_id);
  const own = id === undefined ? undefined : resources.find(({ externalId }) => externalIdKey(externalId) === id);
  const [attempt] = [node.progress?.attempt, own?.tags.nodepool_launch_attempt].filter(isNamed);
  const launching = node.progress?.kind === 'launch';
  return resources.filter((resource) => {
    const of = resource.tags.nodepool_launch_attempt;
    if (!isNamed(of) || resource === own || attempt === undefined) return false;
    if (resource.tags.nodepool_pool_name !== node.pool) return false;
    // A node has one instance. During a launch the attempt may be about to replace it.
    return of !== attempt || (!launching && own !== undefined && resource.kind === own.kind);
  });
}

function isNamed(attempt: string | undefined): attempt is string {
  return attempt !== undefined && attempt !== '';
}

/** Returns the resources whose upload a fresh read does not find. Resources without an image name are skipped. */
async function withoutUpload(
  store: Records,
  provider: string,
  resources: readonly Resource[],
  options: CallOptions,
): Promise<readonly Unrecorded[]> {
  const cached = new Set<string>();
  const named = new Set<string>();
  if (resources.length > 0) {
    for (const { image, build, id, external_id: externalId } of store.images.uploads({ provider })) {
      cached.add(uploadPath(image, build, provider, id));
      if (externalId !== null) named.add(externalIdKey(externalId));
    }
  }
  const unknown: Unrecorded[] = [];
  for (const resource of resources) {
    const path = pathOf(resource, provider);
    if (path === undefined || cached.has(path) || named.has(externalIdKey(resource.externalId))) continue;
    const isKnown = (await store.zooKeeper.exists(path, options)) !== undefined;
    if (!isKnown) unknown.push({ resource, because: 'its upload has no record' });
  }
  return unknown;
}

/** Returns the path of the upload's record; undefined if the tags have another format. */
function pathOf({ tags }: Resource, provider: string): string | undefined {
  const { nodepool_image_name: image, nodepool_build_id: build, nodepool_upload_id: upload } = tags;
  if (image === undefined || !IMAGE_NAME.test(image)) return undefined;
  if (build === undefined || !BUILD_ID.test(build) || upload === undefined || !UPLOAD_ID.test(upload)) return undefined;
  return uploadPath(image, build, provider, upload);
}

/**
 * Returns the resources of builds, e.g. files of unfinished uploads, whose build has no record of an upload to the
 * provider. Each upload of the build can use them.
 */
async function withoutUploadOfBuild(
  { zooKeeper }: Records,
  provider: string,
  resources: readonly Resource[],
  options: CallOptions,
): Promise<readonly Unrecorded[]> {
  const unknown: Unrecorded[] = [];
  for (const resource of resources) {
    const { nodepool_image_name: image, nodepool_build_id: build } = resource.tags;
    if (image === undefined || !IMAGE_NAME.test(image) || build === undefined || !BUILD_ID.test(build)) continue;
    const records = await childrenOf(zooKeeper, uploadsPath(image, build, provider), options);
    const isUsed = records.some((name) => UPLOAD_ID.test(name));
    if (!isUsed) unknown.push({ resource, because: 'its build has no upload' });
  }
  return unknown;
}
