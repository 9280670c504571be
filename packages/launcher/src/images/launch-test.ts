/**
 * The launch test of an upload: an ordinary request for one node of a label with the image, launched from exactly that
 * upload, through the same limits as every other request. The node must be ready, and run the command of the test.
 */

import { loginOf, runOverSsh } from '@nodepool/daemon/ssh';
import {
  abortReason,
  LAUNCH_TEST_REQUESTOR,
  linkSignals,
  type ImageUpload,
  type LaunchTestConfig,
  type Logger,
  type NodeRequestData,
  type ProviderConfig,
} from '@nodepool/core';
import { pathOf, type NodeHandle, type RequestEntry } from '@nodepool/store';
import { type LauncherContext, unixSeconds } from '../context.js';

/** Priority of the requests: that of most jobs, since a busy site would otherwise never test its images. */
const PRIORITY = 200;

export type LaunchTestResult =
  | { readonly kind: 'passed' }
  | { readonly kind: 'failed'; readonly reason: string }
  /** The test says nothing about the upload, and is repeated. */
  | { readonly kind: 'inconclusive'; readonly reason: string };

/** Returns a label of the provider whose nodes use the image. */
export function labelToTest({ pools }: ProviderConfig, image: string): string | undefined {
  for (const { labels, maxServers } of pools.values()) {
    if (maxServers <= 0) continue;
    for (const { name, image: used } of labels.values()) {
      if (used.kind === 'diskimage' && used.name === image) return name;
    }
  }
  return undefined;
}

/** Tests the upload. Nothing of the test is left when this resolves or rejects, not even if this process dies. */
export async function testLaunch(
  context: LauncherContext,
  upload: ImageUpload,
  label: string,
  test: LaunchTestConfig,
  signal: AbortSignal,
  log: Logger,
): Promise<LaunchTestResult> {
  const { requests, nodes: allNodes } = context.store;
  const id = await requests.submit(testRequest(context, upload, label), {
    priority: PRIORITY,
    // If the launcher dies, the request is withdrawn, and launchers delete its node.
    ephemeral: true,
    signal,
  });
  log.info('The launch test of an image has begun', { node_request_id: id });
  const failed = new Set<string>();
  const unsubscribe = allNodes.onChange(({ before, after }) => {
    if (before?.node.allocated_to === id && after?.node.state === 'failed') failed.add(after.id);
  });
  try {
    const entry = await ended(context, id, signal);
    if (entry === undefined) return { kind: 'inconclusive', reason: 'its request was deleted' };
    const { state, nodes, decline_reasons: reasons } = entry.request;
    if (state === 'failed') {
      const why = Object.values(reasons).join('; ');
      const reason = `no node could be launched from it: ${why === '' ? 'no pool served it' : why}`;
      // Without a failed launch, the label or the capacity is at fault.
      return { kind: failed.size > 0 ? 'failed' : 'inconclusive', reason };
    }
    return await testNode(context, nodes[0] ?? '', upload, test, signal);
  } finally {
    unsubscribe();
    await requests.remove(id);
  }
}

function testRequest(context: LauncherContext, upload: ImageUpload, label: string): NodeRequestData {
  return {
    state: 'requested',
    state_time: unixSeconds(context),
    declined_by: [],
    decline_reasons: {},
    node_types: [label],
    nodes: [],
    reuse: false,
    requestor: LAUNCH_TEST_REQUESTOR,
    requestor_data: { image_upload: pathOf(upload) },
    provider: upload.provider,
    relative_priority: 0,
    event_id: context.random.uuidHex(),
    created_time: unixSeconds(context),
    tenant_name: null,
  };
}

/** Resolves with the request once it is fulfilled or failed; with undefined if it was deleted. */
function ended({ store }: LauncherContext, id: string, signal: AbortSignal): Promise<RequestEntry | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      unsubscribe();
      signal.removeEventListener('abort', onAbort);
    };
    const onAbort = (): void => {
      end();
      reject(abortReason(signal));
    };
    const consider = (entry: RequestEntry | undefined): void => {
      if (entry !== undefined && entry.request.state !== 'fulfilled' && entry.request.state !== 'failed') return;
      end();
      resolve(entry);
    };
    const unsubscribe = store.requests.onChange((change) => {
      if (change.id === id) consider(change.after);
    });
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    else if (store.requests.get(id) !== undefined) consider(store.requests.get(id));
  });
}

/** Uses the node as a requestor does, and returns it. */
async function testNode(
  context: LauncherContext,
  id: string,
  upload: ImageUpload,
  test: LaunchTestConfig,
  signal: AbortSignal,
): Promise<LaunchTestResult> {
  const handle = await context.store.nodes.tryLock(id, { change: { state: 'in-use' }, signal });
  if (handle === undefined) return { kind: 'inconclusive', reason: `another program has locked its node ${id}` };
  try {
    // A launcher without reviews, which serves the same provider, uses its newest upload.
    if (handle.node.image_id !== pathOf(upload)) {
      return { kind: 'inconclusive', reason: `a launcher without reviews has launched node ${id} from another image` };
    }
    return await runCommand(context, handle, test, signal);
  } finally {
    await handle.release({ state: 'used' });
  }
}

async function runCommand(
  { clock }: LauncherContext,
  { node, lock }: NodeHandle,
  { command, timeoutMs, identity }: LaunchTestConfig,
  signal: AbortSignal,
): Promise<LaunchTestResult> {
  if (command === undefined) return { kind: 'passed' };
  const target = loginOf({
    address: node.interface_ip,
    connectionPort: node.connection_port,
    connectionType: node.connection_type,
    shellType: node.shell_type,
    username: node.username,
    hostKeys: node.host_keys,
  });
  if ('refused' in target) {
    return { kind: 'failed', reason: `the command cannot be run on its node ${node.id}: ${target.refused}` };
  }
  const linked = linkSignals(signal, lock.lost);
  try {
    const { status, timedOut, output } = await runOverSsh({
      ...{ target, identity, command, timeoutMs, clock },
      signal: linked.signal,
    });
    if (timedOut) return { kind: 'failed', reason: `the command of the test took longer than ${timeoutMs / 1000} s` };
    if (status === 0) return { kind: 'passed' };
    const last = output.trim().split('\n').at(-1) ?? '';
    return { kind: 'failed', reason: `the command of the test ended with status ${status}: ${last.slice(0, 300)}` };
  } finally {
    linked.unlink();
  }
}
