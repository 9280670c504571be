/** Describes why an object that is being deleted still exists, in the words of the cluster. */

import { objectAt, stringAt } from '@nodepool/core';
import { listAt, PODS, type Kind, type KubernetesObject } from './client/objects.js';
import { nodeNameOf } from './pod-state.js';

/** Maximum length of the cluster's texts (characters). */
const MAX_TEXT = 300;

/**
 * Returns e.g. `namespace main-0000000001 has been Terminating since 2026-01-01T12:00:00Z: Some resources are
 * remaining: pods. has 1 resource instances`. The conditions are those of the namespace controller.
 */
export function describeTermination({ objectKind }: Kind, object: KubernetesObject): string {
  const { name, data } = object;
  const metadata = objectAt(data, 'metadata') ?? {};
  const since = stringAt(metadata, 'deletionTimestamp') ?? '';
  const reasons = [...conditionsOf(object), ...finalizersOf(object)];
  if (objectKind === PODS.objectKind) {
    const node = nodeNameOf(object);
    if (node !== undefined) reasons.push(`the kubelet of node ${node} has not confirmed the end of the pod`);
  }
  const why = reasons.length === 0 ? '' : `: ${reasons.join('; ').replace(/\s+/g, ' ').slice(0, MAX_TEXT)}`;
  return `${objectKind.toLowerCase()} ${name} has been Terminating since ${since}${why}`;
}

/** Returns what remains in a namespace, e.g. pods of a dead node, or kinds of an API service that does not answer. */
function conditionsOf({ data }: KubernetesObject): string[] {
  return listAt(objectAt(data, 'status') ?? {}, 'conditions').flatMap((condition) => {
    const isObstacle = stringAt(condition, 'status') === 'True' && /^Namespace/.test(stringAt(condition, 'type') ?? '');
    const message = stringAt(condition, 'message') ?? '';
    return isObstacle && message !== '' ? [message] : [];
  });
}

function finalizersOf({ data }: KubernetesObject): string[] {
  const { finalizers } = objectAt(data, 'metadata') ?? {};
  const names = Array.isArray(finalizers) ? finalizers.filter((each) => typeof each === 'string') : [];
  return names.length === 0 ? [] : [`finalizers ${names.join(', ')} remain`];
}
