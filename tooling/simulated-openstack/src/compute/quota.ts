/** Quota checks of nova. */

import type { OpenStackState } from '../cloud-state.js';
import type { Caller } from '../http/request-context.js';
import type { NetworkStore } from '../network/networks.js';
import { fits } from '../quotas.js';
import { computeError } from './errors.js';
import type { ServerSpec } from './records.js';
import type { ServerStore } from './servers.js';

/** Throws an API error if the servers exceed the quota. */
export function checkServerQuota(
  spec: ServerSpec,
  { projectId, projectName }: Caller,
  state: OpenStackState,
  servers: ServerStore,
  networks: NetworkStore,
): void {
  const quota = state.quotas.enforced(projectName);
  const used = servers.used(projectId);
  const { flavor, minCount } = spec;
  const wanted = { cores: flavor.vcpus * minCount, instances: minCount, ram: flavor.ram * minCount };
  const over = (['cores', 'instances', 'ram'] as const).filter((name) => !fits(quota[name], used[name], wanted[name]));
  if (over.length > 0) {
    const names = over.join(', ');
    const list = (values: Readonly<Record<(typeof over)[number], number>>): string =>
      over.map((name) => values[name]).join(', ');
    throw computeError(
      403,
      `Quota exceeded for ${names}: Requested ${list(wanted)}, but already used ${list(used)} of ${list(quota)} ${names}`,
    );
  }
  const ports = [...networks.ports.all()].filter(({ project }) => project === projectId).length;
  const newPorts = spec.interfaces.filter((entry) => 'networkId' in entry).length * minCount;
  if (newPorts > 0 && !fits(quota.port, ports, newPorts)) throw computeError(403, 'Maximum number of ports exceeded');
}
