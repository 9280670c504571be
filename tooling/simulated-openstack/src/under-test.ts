/** Selects the OpenStack for tests: a simulated one, or the real services that the environment names. */

import type { SimulatedOpenStack, SimulatedOpenStackOptions } from './api.js';
import { startSimulatedOpenStack } from './start.js';

/** Variable with the path of a clouds.yaml of real services that tests may modify; `pnpm test:openstack` sets it. */
export const REAL_CLOUD_VARIABLE = 'NODEPOOL_REAL_OPENSTACK';

export interface OpenStackUnderTest {
  readonly kind: 'simulated' | 'real';
  /** Path of a clouds.yaml with the clouds `real`, `limited`, `real-admin`, `real-appcred`. */
  readonly cloudsYaml: string;
  /** Access to faults and content; undefined for real services. */
  readonly simulated: SimulatedOpenStack | undefined;
  /** Closes a simulated OpenStack and leaves real services running. */
  close(): Promise<void>;
}

/** Returns true if tests use the real services, where creating a server takes seconds. */
export function isRealOpenStackUnderTest(): boolean {
  return (process.env[REAL_CLOUD_VARIABLE] ?? '') !== '';
}

/**
 * Returns the OpenStack for tests; `options` apply to a simulated one. Called in `beforeAll`, and its `close` in
 * `afterAll`.
 */
export async function openStackUnderTest(options: SimulatedOpenStackOptions = {}): Promise<OpenStackUnderTest> {
  const cloudsYaml = process.env[REAL_CLOUD_VARIABLE] ?? '';
  if (cloudsYaml !== '') return { kind: 'real', cloudsYaml, simulated: undefined, close: () => Promise.resolve() };
  const simulated = await startSimulatedOpenStack(options);
  return { kind: 'simulated', cloudsYaml: simulated.cloudsYaml, simulated, close: () => simulated.close() };
}
