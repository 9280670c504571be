/** Makes a `Driver` of what a driver on the state-machine framework defines. */

import type { Driver, Provider } from '../api.js';
import type { LabelConfig, ProviderConfig } from '../provider-config.js';
import type { StateMachineDriver } from '../state-machine-api.js';
import { StateMachineProvider } from './provider.js';

export function stateMachineDriver<L extends LabelConfig, P extends ProviderConfig<L>>(
  definition: StateMachineDriver<L, P>,
): Driver {
  return {
    name: definition.name,
    schema: definition.schema,
    getProviderConfig: (section, context) => definition.getProviderConfig(section, context),
    getProvider: (given): Provider => {
      // Whoever calls this has it from `getProviderConfig` of the same driver, as the interface demands.
      const config = given as P;
      return new StateMachineProvider(config, definition.getAdapter(config));
    },
  };
}
