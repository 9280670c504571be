/** The OpenStack that the demonstration uses: one that clouds.yaml names, or a simulated one. */

import { startSimulatedOpenStack } from '@nodepool/simulated-openstack';

export interface Cloud {
  /** Description for messages. */
  readonly what: string;
  /** Name in clouds.yaml. */
  readonly name: string;
  readonly cloudsYaml: string;
  stop(): Promise<void>;
}

/**
 * Returns the cloud that `OS_CLIENT_CONFIG_FILE` and `OS_CLOUD` (default `real`) name. Throws an error with a remedy if
 * no file is named.
 */
export function cloudOfEnvironment(): Cloud {
  const cloudsYaml = process.env['OS_CLIENT_CONFIG_FILE'];
  if (cloudsYaml === undefined) {
    throw new Error(
      'no cloud: set OS_CLIENT_CONFIG_FILE to a clouds.yaml (and OS_CLOUD to a name in it), or use --simulated',
    );
  }
  const name = process.env['OS_CLOUD'] ?? 'real';
  return { what: `the cloud ${name} of ${cloudsYaml}`, name, cloudsYaml, stop: () => Promise.resolve() };
}

/** Starts a simulated OpenStack in this process. */
export async function simulatedCloud(): Promise<Cloud> {
  const cloud = await startSimulatedOpenStack({});
  const { url, cloudsYaml } = cloud;
  return { what: `a simulated OpenStack at ${url}`, name: 'real', cloudsYaml, stop: () => cloud.close() };
}
