/** Drivers that violate the rules about remote calls and about stopping a provider. */

import { createServer } from 'node:net';
import type { Advance, MachineCall } from '@nodepool/core';
import type { AcmeClient } from '../acme-client.js';
import { creations, changed, providers, ticks } from '../changed-drivers.js';
import { leftOpen, type Defect } from './defect.js';

export const callsDefects: Readonly<Record<string, Defect>> = {
  'calls.reported': {
    changes: {
      adapter: ({ start }) => ({ start: (context) => start!({ ...context, onApiCall: () => undefined }) }),
    },
    says: /no remote call was reported/,
  },
  'calls.shared-list': {
    changes: creations((make, saved, externalId, { client }) => {
      const machine = make(saved, externalId);
      const advance = (call: MachineCall): Advance => {
        const next = machine.advance(call);
        if (next.next === 'listing') void client().page(0, call);
        return next;
      };
      return changed(machine, { advance });
    }),
    says: /ten concurrent launches/,
  },
  'calls.aborted-before': {
    changes: providers((provider) => ({
      listNodes: (call) => provider.listNodes({ ...call, signal: new AbortController().signal }),
    })),
    says: /did not fail/,
  },
  'calls.abort': {
    changes: {
      adapter: ({ listInstances }) => ({
        listInstances: (call) => listInstances({ ...call, signal: new AbortController().signal }),
      }),
    },
    says: /a list that was aborted failed with the code "timeout" instead of "aborted"/,
  },
  'calls.abandoned': {
    changes: {
      client: ({ create }) => ({
        create: (tags, zone, image, call) =>
          create(tags, zone, image, { ...call, signal: new AbortController().signal, deadline: Infinity }),
      }),
    },
    says: /the driver ignores abort: its remote create call still runs 10 s after its signal aborted/,
  },
  'calls.event-loop': {
    changes: {
      client: ({ create }) => ({
        create: (...args) => {
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400);
          return create(...args);
        },
      }),
    },
    says: /the driver blocked the event loop for \d+ ms while a node was launched/,
  },
  'calls.deadline': {
    changes: providers((provider) => ({ listNodes: (call) => provider.listNodes({ ...call, deadline: Infinity }) })),
    says: /until a list with a deadline|has not ended/,
  },
  'calls.list-again': {
    changes: {
      client: ({ page }, cloud) => {
        let hanging: ReturnType<AcmeClient['page']> | undefined;
        return {
          page: (from, call) => {
            hanging ??= page(from, { ...call, signal: new AbortController().signal, deadline: Infinity });
            return hanging.finally(() => {
              hanging = cloud.bootMs > 0 ? hanging : undefined;
            });
          },
        };
      },
    },
    says: /did not end|not ended/,
  },
  'stop.ends': {
    changes: providers((provider) => ({
      stop: () => undefined,
      join: async () => {
        provider.stop();
        await provider.join();
      },
    })),
    says: /did not fail|not ended/,
  },
  'stop.nothing-after': { changes: ticks(30_000, false), says: /that a provider left behind/ },
  'stop.unused': { changes: ticks(60_000, true), says: /an idle provider made/ },
  'stop.any-time': {
    changes: providers((provider) => {
      let stops = 0;
      return {
        stop: () => {
          if (++stops > 1) throw new Error('it was stopped before');
          provider.stop();
        },
      };
    }),
    says: /stopped before/,
  },
  'stop.handles': {
    changes: {
      adapter: ({ start }) => ({
        async start(context) {
          await start!(context);
          const server = createServer().listen(0);
          leftOpen.push(server);
        },
      }),
    },
    says: /handles that were left open/,
  },
};
