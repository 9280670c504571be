/** Codec of `/nodepool/nodes/<id>`. */

import { recordCodec, type Codec } from './codec.js';
import {
  externalId,
  number,
  object,
  oneOf,
  sharedObject,
  sharedText,
  sharedTexts,
  text,
  texts,
  unknownState,
  value,
  type RawField,
} from './fields.js';
import {
  type JsonObject,
  type NodeMachine,
  INTERRUPTION_KINDS,
  MARKETS,
  NODE_STATES,
  type Node,
  type NodeData,
  type NodeInterruption,
  type NodeProgress,
  type NodeTrial,
  type Resources,
} from '@nodepool/core';

export const nodeCodec: Codec<{ readonly id: string }, NodeData> = recordCodec<{ readonly id: string }, NodeData>({
  fields: {
    state: true,
    state_time: true,
    cloud: true,
    provider: true,
    pool: true,
    type: true,
    allocated_to: true,
    az: true,
    region: true,
    public_ipv4: true,
    private_ipv4: true,
    public_ipv6: true,
    host_id: true,
    interface_ip: true,
    connection_port: true,
    image_id: true,
    launcher: true,
    created_time: true,
    external_id: true,
    hostname: true,
    comment: true,
    user_data: true,
    hold_job: true,
    host_keys: true,
    username: true,
    connection_type: true,
    shell_type: true,
    hold_expiration: true,
    resources: true,
    slot: true,
    attributes: true,
    python_path: true,
    tenant_name: true,
    driver_data: true,
    requestor: true,
    progress: true,
    machine_type: true,
    interruption: true,
    trial: true,
    job_result: true,
    project: true,
    machine: true,
  },

  read(raw, { id }, changedAt): Node | string {
    const state = oneOf(raw.state, NODE_STATES);
    if (state === undefined) return unknownState(raw.state, NODE_STATES);
    const trialOfNode = trial(raw.trial);
    const jobResult = text(raw.job_result);
    const project = text(raw.project);
    const machineOfNode = machine(raw.machine);
    // Most nodes have a single address, whose text is kept once.
    const address = text(raw.interface_ip);
    return {
      id,
      state,
      state_time: number(raw.state_time) ?? changedAt,
      created_time: number(raw.created_time),
      provider: sharedText(raw.provider),
      pool: sharedText(raw.pool),
      launcher: sharedText(raw.launcher),
      // Old records have a single label.
      type: typeof raw.type === 'string' ? [raw.type] : sharedTexts(raw.type),
      allocated_to: text(raw.allocated_to),
      external_id: externalId(raw.external_id),
      hostname: text(raw.hostname),
      cloud: sharedText(raw.cloud),
      region: sharedText(raw.region),
      az: sharedText(raw.az),
      host_id: text(raw.host_id),
      interface_ip: address,
      public_ipv4: raw.public_ipv4 === address ? address : text(raw.public_ipv4),
      private_ipv4: raw.private_ipv4 === address ? address : text(raw.private_ipv4),
      public_ipv6: text(raw.public_ipv6),
      connection_type: sharedText(raw.connection_type),
      connection_port: connectionPort(raw),
      username: sharedText(raw.username),
      python_path: sharedText(raw.python_path),
      shell_type: sharedText(raw.shell_type),
      host_keys: texts(raw.host_keys),
      image_id: sharedText(raw.image_id),
      attributes: sharedObject(raw.attributes),
      resources: resources(raw.resources),
      slot: number(raw.slot),
      driver_data: value(raw.driver_data),
      tenant_name: sharedText(raw.tenant_name),
      requestor: sharedText(raw.requestor),
      comment: text(raw.comment),
      hold_job: text(raw.hold_job),
      hold_expiration: number(raw.hold_expiration) ?? text(raw.hold_expiration),
      user_data: value(raw.user_data),
      progress: progress(raw.progress),
      machine_type: sharedText(raw.machine_type),
      interruption: interruption(raw.interruption),
      ...(trialOfNode === null ? {} : { trial: trialOfNode }),
      ...(jobResult === null ? {} : { job_result: jobResult }),
      ...(project === null ? {} : { project }),
      ...(machineOfNode === null ? {} : { machine: machineOfNode }),
    };
  },

  // Other programs do not know these fields, and most records have no value for them.
  omitted: ['progress', 'machine_type', 'interruption', 'trial', 'job_result', 'project', 'machine'],

  aliases: { ssh_port: 'connection_port' },
});

/** Reads the port, which old records have under its old name only. */
function connectionPort(raw: JsonObject): NodeData['connection_port'] {
  const port = raw.connection_port === undefined ? raw.ssh_port : raw.connection_port;
  return number(port) ?? object(port);
}

function resources(raw: RawField): Resources | null {
  const amounts = sharedObject(raw);
  if (amounts === null) return null;
  if (isResources(amounts)) return amounts;
  const known: Record<string, number> = {};
  for (const [name, amount] of Object.entries(amounts)) if (typeof amount === 'number') known[name] = amount;
  return known;
}

function isResources(amounts: JsonObject): amounts is Readonly<Record<string, number>> {
  for (const name in amounts) if (typeof amounts[name] !== 'number') return false;
  return true;
}

/** Returns null for progress that cannot be resumed: the instance is then found by its tags. */
function progress(raw: RawField): NodeProgress | null {
  const fields = object(raw);
  if (fields === null) return null;
  const kind = oneOf(fields.kind, ['launch', 'deletion']);
  const attempt = text(fields.attempt);
  if (kind === undefined || attempt === null) return null;
  const machineType = text(fields.machine_type);
  return {
    kind,
    attempt,
    number: number(fields.number) ?? 1,
    started: number(fields.started) ?? 0,
    ...(machineType === null ? {} : { machine_type: machineType }),
    machine: value(fields.machine),
  };
}

function machine(raw: RawField): NodeMachine | null {
  const fields = object(raw);
  const type = text(fields?.type);
  return type === null || type === '' ? null : { type, market: oneOf(fields?.market, MARKETS) ?? 'on-demand' };
}

function interruption(raw: RawField): NodeInterruption | null {
  const fields = object(raw);
  const kind = oneOf(fields?.kind, INTERRUPTION_KINDS);
  if (fields === null || kind === undefined) return null;
  return { kind, reason: text(fields.reason) ?? '', time: number(fields.time) ?? 0, ends_at: number(fields.ends_at) };
}

/** Returns null for a trial that cannot be read: the node then counts for none. */
function trial(raw: RawField): NodeTrial | null {
  const fields = object(raw);
  const upload = text(fields?.upload);
  const share = number(fields?.share);
  if (fields === null || upload === null || share === null || typeof fields.candidate !== 'boolean') return null;
  return { upload, candidate: fields.candidate, share, launch: text(fields.launch), seconds: number(fields.seconds) };
}
