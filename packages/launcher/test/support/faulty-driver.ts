/** The example driver with faults. */

import {
  ApiClient,
  NO_CREDENTIALS,
  silentLogger,
  toDriverError,
  type Driver,
  type Provider,
  type ProviderContext,
} from '@nodepool/core';
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

/** Calls of a provider that get no answer. */
export class UnansweredCalls {
  private api: ApiClient | undefined;

  /** Must be called with the context of the provider's start. */
  start({ clock, onApiCall }: ProviderContext): void {
    this.api = new ApiClient({ clock, onApiCall, credentials: NO_CREDENTIALS, errorOf: toDriverError });
  }

  readonly call = async (): Promise<never> => {
    if (this.api === undefined) throw new Error('the provider has not started');
    const call = { signal: new AbortController().signal, deadline: Infinity, log: silentLogger };
    const request = { service: 'compute', method: 'GET', operation: 'servers' };
    return this.api.send(request, call, ({ http }) =>
      http.send('https://compute.example/', { method: 'GET' }, () => new Promise<never>(() => undefined)),
    );
  };
}
