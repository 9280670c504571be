/** Settings of the simulated cluster. */

import type { PodFailureKind } from './kubelet.js';

export interface ClusterSettings {
  /** Time from the creation of a pod until it runs (ms). */
  readonly bootMs: number;
  /** Failure of new pods, and the time after which they start nevertheless (ms; `Infinity`: never). */
  readonly podFailure: { readonly kind: PodFailureKind; readonly forMs: number } | undefined;
  /** Time from the deletion of a namespace, or of a pod that runs, until it no longer exists (ms). */
  readonly deleteMs: number;
  /** True while deleted namespaces and running pods stay `Terminating`, as with a dead node. Default false. */
  readonly isNodeDead?: boolean;
  /** Time until a controller has written the token of a service account, or the account of a new namespace (ms). */
  readonly controllerMs: number;
  readonly latencyMs: number;
  /** Difference of the servers' clock, which their header `Date` shows, from the cloud's (ms). Default 0. */
  readonly clockAheadMs?: number;
  /** Maximum number of objects per page; lists without a limit have one page. */
  readonly pageLimit: number;
  /** Interval of bookmarks in watches (ms). */
  readonly bookmarkMs: number;
  /** Time between the two halves of an event in new watches (ms); undefined if events are sent as a whole. */
  readonly splitEventsMs?: number;
  /** Number of changes that watches can continue from; older versions are answered with 410. */
  readonly history: number;
  /** True if the cluster also has the projects of OpenShift. */
  readonly openshift: boolean;
}

export const DEFAULT_SETTINGS: ClusterSettings = {
  bootMs: 0,
  podFailure: undefined,
  deleteMs: 0,
  controllerMs: 100,
  latencyMs: 0,
  pageLimit: Infinity,
  bookmarkMs: 60_000,
  history: 10_000,
  openshift: false,
};

/** Token of the cluster's administrator. */
export const ADMIN_TOKEN = 'admin-token';
/** Token of a user of OpenShift who may request projects, and is the administrator of those. */
export const PROVISIONER_TOKEN = 'provisioner-token';
/** Token of a user without permissions. */
export const LIMITED_TOKEN = 'limited-token';
