/** The example driver, gone wrong. */

import type { Driver, Provider } from '@nodepool/core';
import type { NodepoolConfig } from '@nodepool/config';
import { exampleDriver, type ExampleCloud } from '@nodepool/driver-example';

/**
 * For a configuration: the example driver, whose providers do what `spoilt` says, wherever it says something at that moment.
 * `spoilt` gets the provider as it would be.
 */
export function spoiltDriver(
  cloud: ExampleCloud,
  spoilt: (provider: Provider) => Partial<Provider>,
): Partial<NodepoolConfig> {
  const example = exampleDriver({ cloud });
  const driver: Driver = {
    name: 'example',
    schema: example.schema,
    getProviderConfig: (section, context) => example.getProviderConfig(section, context),
    getProvider: (config) =>
      new Proxy(example.getProvider(config), {
        get: (target, name): unknown => {
          const changed = spoilt(target);
          return Reflect.get(Object.hasOwn(changed, name) ? changed : target, name);
        },
      }),
  };
  return { loadedDrivers: new Map([['example', driver]]) };
}
