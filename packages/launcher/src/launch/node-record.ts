/** Contents of node records before and after a launch. */

import { projectOf } from '@nodepool/core';
import type { ImageChoice } from '@nodepool/store';
import type {
  ExternalId,
  ImageUpload,
  LabelConfig,
  LaunchedInstance,
  NodeData,
  NodeRequest,
  PoolConfig,
  Resources,
} from '@nodepool/core';

/** Input for the record of a planned node. */
export interface NodePlan {
  readonly provider: string;
  readonly pool: PoolConfig;
  readonly label: LabelConfig;
  /** `id` of the pool component. */
  readonly launcher: string;
  readonly request: NodeRequest;
  readonly resources: Resources;
  /** The upload that a label with a disk image uses. */
  readonly upload: ImageUpload | undefined;
  readonly trial?: ImageChoice['trial'];
  readonly az: string | undefined;
}

/** Returns the record of a node whose launch has not begun. */
export function plannedNode(plan: NodePlan, now: number): NodeData {
  const project = projectOf(plan.request);
  return {
    state: 'init',
    state_time: now,
    created_time: now,
    provider: plan.provider,
    pool: plan.pool.name,
    launcher: plan.launcher,
    type: [plan.label.name],
    allocated_to: plan.request.id,
    external_id: null,
    hostname: null,
    cloud: null,
    region: null,
    az: plan.az ?? null,
    host_id: null,
    interface_ip: null,
    public_ipv4: null,
    private_ipv4: null,
    public_ipv6: null,
    ...labelFields(plan),
    host_keys: [],
    attributes: plan.pool.nodeAttributes,
    resources: plan.resources,
    slot: null,
    driver_data: null,
    tenant_name: plan.request.tenant_name,
    requestor: plan.request.requestor,
    comment: null,
    hold_job: null,
    hold_expiration: null,
    user_data: null,
    progress: null,
    machine_type: null,
    interruption: null,
    ...(plan.trial === undefined ? {} : { trial: { ...plan.trial, launch: null, seconds: null } }),
    ...(project === null ? {} : { project }),
  };
}

type LabelFields = Pick<
  NodeData,
  'connection_type' | 'connection_port' | 'username' | 'python_path' | 'shell_type' | 'image_id'
>;

/** Returns the fields that depend on the label and its upload. */
export function labelFields({ label, upload }: Pick<NodePlan, 'label' | 'upload'>): LabelFields {
  const { connection } = label;
  return {
    connection_type: connection.type,
    connection_port: connection.port,
    username: connection.username,
    python_path: connection.pythonPath,
    shell_type: connection.shellType,
    image_id: upload === undefined ? cloudImageIdOf(label) : imageIdOf(upload),
  };
}

/** Returns the `image_id` of nodes of a label without an upload; null if the label names no image. */
function cloudImageIdOf({ image }: NodePlan['label']): string | null {
  return image.name === '' ? null : image.name;
}

/** Returns the `image_id` of nodes that are launched from an upload: its znode path. */
export function imageIdOf(upload: ImageUpload): string {
  return `/nodepool/images/${upload.image}/builds/${upload.build}/providers/${upload.provider}/images/${upload.id}`;
}

/** Returns the change that makes a node `ready`. Planned amounts that the instance does not report still count. */
export function readyNode(
  { resources: planned, attributes, progress }: Pick<NodeData, 'resources' | 'attributes' | 'progress'>,
  instance: LaunchedInstance,
  hostKeys: readonly string[],
): Partial<NodeData> {
  const { connection } = instance;
  const address = instance.interfaceIp ?? instance.publicIpv4 ?? instance.publicIpv6 ?? instance.privateIpv4;
  const change: Mutable<Partial<NodeData>> = {
    state: 'ready',
    external_id: instance.externalId,
    interface_ip: address ?? null,
    public_ipv4: instance.publicIpv4 ?? null,
    private_ipv4: instance.privateIpv4 ?? null,
    public_ipv6: instance.publicIpv6 ?? null,
    cloud: instance.cloud ?? null,
    region: instance.region ?? null,
    host_id: instance.hostId ?? null,
    host_keys: hostKeys.length > 0 ? hostKeys : (instance.hostKeys ?? []),
    machine_type: progress?.machine_type ?? null,
    progress: null,
  };
  if (instance.attributes !== undefined) change.attributes = { ...instance.attributes, ...attributes };
  if (instance.hostname !== undefined) change.hostname = instance.hostname;
  if (instance.az !== undefined) change.az = instance.az;
  if (instance.resources !== undefined) change.resources = { ...planned, ...instance.resources };
  if (instance.machine !== undefined) change.machine = { market: 'on-demand', ...instance.machine };
  if (instance.driverData !== undefined) change.driver_data = instance.driverData;
  if (instance.slot !== undefined) change.slot = instance.slot;
  if (connection === undefined) return change;
  if (connection.type !== undefined) change.connection_type = connection.type;
  if (connection.port !== undefined) change.connection_port = connection.port;
  if (connection.username !== undefined) change.username = connection.username;
  if (connection.pythonPath !== undefined) change.python_path = connection.pythonPath;
  if (connection.shellType !== undefined) change.shell_type = connection.shellType;
  return change;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Returns a record that serves only to delete an instance left by a failed attempt. */
export function leftoverNode(of: NodeData, externalId: ExternalId, now: number): NodeData {
  return {
    ...of,
    state: 'deleting',
    state_time: now,
    created_time: now,
    allocated_to: null,
    external_id: externalId,
    comment: 'left by a failed launch attempt',
    // The tags of the instance name the node of the launch; the attempt identifies the instance.
    progress: of.progress && { ...of.progress, kind: 'deletion', machine: null },
  };
}
