/** The example driver with faults. */

import type { Driver, Provider } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { exampleDriver, type ExampleCloud } from '@nodepool/driver-example';

/**
 * Returns configuration properties with a faulty example driver. Each access to a property of a provider returns the
 * one in the result of `overrides` if there is one, otherwise the original; `overrides` receives the original provider.
 */
export function faultyDriver(
  cloud: ExampleCloud,
  overrides: (provider: Provider) => Partial<Provider>,
): Partial<NodepoolConfig> {
  const example = exampleDriver({ cloud });
  const driver: Driver = {
    name: 'example',
    schema: example.schema,
    getProviderConfig: (section, context) => example.getProviderConfig(section, context),
    getProvider: (config) =>
      new Proxy(example.getProvider(config), {
        get: (target, name): unknown => {
          const changed = overrides(target);
          return Reflect.get(Object.hasOwn(changed, name) ? changed : target, name);
        },
      }),
  };
  return { loadedDrivers: new Map([['example', driver]]) };
}
