/** Creates a `Driver` from the definition of a driver on the state-machine framework. */

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
    siteGuide: definition.siteGuide,
    getProviderConfig: (section, context) => definition.getProviderConfig(section, context),
    getProvider: (given): Provider => {
      // The interface requires that `given` comes from `getProviderConfig` of the same driver.
      const config = given as P;
      return new StateMachineProvider(config, definition.getAdapter(config));
    },
  };
}
