/** The acme driver on the simple framework: the smallest possible driver. */

import { simpleTaskManagerDriver, type Driver, type LabelConfig, type ProviderConfig } from '@nodepool/core';
import { acmeClient, explain, type AcmeClient } from './acme-client.js';
import type { AcmeCloud } from './acme-cloud.js';
import { acmeAdapter, acmeSchema, loadAcme } from './acme-driver.js';
import { idOf } from './acme-machines.js';

/** Creates the driver. With `polls`, a creation also reads the state of the cloud after it was accepted. */
export function acmeSimpleDriver(cloud: AcmeCloud, polls = false): Driver {
  return simpleTaskManagerDriver<LabelConfig, ProviderConfig>({
    name: 'acme',
    schema: acmeSchema,
    getProviderConfig: loadAcme,
    getAdapter() {
      // Lists and images are those of the state-machine driver; only creations and deletions differ.
      const other = acmeAdapter(cloud);
      let client: AcmeClient | undefined;
      return {
        images: other.images!,
        async start(context) {
          // The task manager reports the calls of this client.
          client = acmeClient(cloud, { ...context, onApiCall: () => undefined }, explain);
          await other.start?.(context);
        },
        createInstance: async (tasks, { tags, label, availabilityZone, imageExternalId, machineType }, call) => {
          const image = imageExternalId === undefined ? 'debian' : idOf(imageExternalId);
          const size = machineType ?? label.machineTypes?.[0];
          const task = { service: 'servers', method: 'POST', operation: 'create' };
          // The task manager ends the task: its deadline moves by the time in the queue.
          const create = (signal: AbortSignal): Promise<string> =>
            client!.create(
              { ...tags },
              availabilityZone ?? 'north',
              image,
              { ...call, signal, deadline: Infinity },
              size,
            );
          const id = await tasks.submit({ ...task, main: create }, call);
          if (polls) {
            const poll = { service: 'servers', method: 'GET', operation: 'poll' };
            await tasks.submit(
              { ...poll, main: (signal) => client!.describe({ ...call, signal, deadline: Infinity }) },
              call,
            );
          }
          return id;
        },
        deleteInstance: (tasks, externalId, call) =>
          tasks.submit(
            {
              service: 'servers',
              method: 'DELETE',
              operation: 'delete',
              main: (signal) => client!.remove(idOf(externalId), { ...call, signal, deadline: Infinity }),
            },
            call,
          ),
        listInstances: (_tasks, call) => other.listInstances(call),
        getQuotaLimits: (_tasks, call) => other.getQuotaLimits!(call),
        getQuotaForLabel: (_tasks, label, call, machineType) => other.getQuotaForLabel!(label, call, machineType),
        getAvailabilityZones: (_tasks, pool, call) => other.getAvailabilityZones!(pool, call),
      };
    },
  });
}
