/** Launches all nodes of a request. */

import type { NodeData } from '@nodepool/core';
import type { LauncherContext } from '../context.js';
import type { LaunchJob } from './launch-job.js';
import { launchNode } from './launch-node.js';

/** Result of the launch stage. */
export type Launched =
  /**
   * `changes` make the nodes ready, in the order of the jobs. The change of a node that was already written is empty.
   */
  | { readonly kind: 'launched'; readonly changes: readonly Partial<NodeData>[] }
  /** `job`: the first that failed. */
  | { readonly kind: 'failed'; readonly job: LaunchJob; readonly error: unknown };

/** Resolves once every launch has ended. `onFailure` is called at the first failure and must abort the other jobs. */
export async function launchNodes(
  context: LauncherContext,
  jobs: readonly LaunchJob[],
  onFailure: (failed: Extract<Launched, { kind: 'failed' }>) => void,
): Promise<Launched> {
  let outstanding = jobs.length;
  let failed: Extract<Launched, { kind: 'failed' }> | undefined;
  const changes = await Promise.all(
    jobs.map(async (job): Promise<Partial<NodeData>> => {
      try {
        const change = await launchNode(context, job);
        outstanding -= 1;
        if (outstanding === 0) return change;
        // Other launches of the request are still running: the record must survive a crash of this process.
        await job.node.update(change);
      } catch (error) {
        if (failed === undefined) {
          failed = { kind: 'failed', job, error };
          onFailure(failed);
        }
      }
      return {};
    }),
  );
  return failed ?? { kind: 'launched', changes };
}
