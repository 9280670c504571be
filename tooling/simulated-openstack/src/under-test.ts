/** Which OpenStack a test talks to: a simulated one of its own, or the real services that the environment names. */

import type { SimulatedOpenStack, SimulatedOpenStackOptions } from './api.js';
import { startSimulatedOpenStack } from './start.js';

/** Names the clouds.yaml of real services that tests may fill and empty; `pnpm test:openstack` sets it. */
export const REAL_CLOUD_VARIABLE = 'NODEPOOL_REAL_OPENSTACK';

export interface OpenStackUnderTest {
  readonly kind: 'simulated' | 'real';
  /** Path of a clouds.yaml with the clouds `real`, `limited`, `real-admin`, `real-appcred`. */
  readonly cloudsYaml: string;
  /** To inject faults and look inside; undefined on the real one. */
  readonly simulated: SimulatedOpenStack | undefined;
  /** Ends the simulated one; leaves the real one running. */
  close(): Promise<void>;
}

/** Whether tests run on the real services. They are slow: a server takes seconds. */
export function isRealOpenStackUnderTest(): boolean {
  return (process.env[REAL_CLOUD_VARIABLE] ?? '') !== '';
}

/** The one that tests are to use; `options` are for the simulated one. Call it in `beforeAll`, and `close` in `afterAll`. */
export async function openStackUnderTest(options: SimulatedOpenStackOptions = {}): Promise<OpenStackUnderTest> {
  const cloudsYaml = process.env[REAL_CLOUD_VARIABLE] ?? '';
  if (cloudsYaml !== '') return { kind: 'real', cloudsYaml, simulated: undefined, close: () => Promise.resolve() };
  const simulated = await startSimulatedOpenStack(options);
  return { kind: 'simulated', cloudsYaml: simulated.cloudsYaml, simulated, close: () => simulated.close() };
}
