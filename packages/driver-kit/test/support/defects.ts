/** For each rule a driver that breaks it: what is changed of the right one, and what the kit must say. */

import { createServer, type Server } from 'node:net';
import {
  ConfigurationError,
  DriverError,
  IMAGE_TAGS,
  NotFoundError,
  QuotaInformation,
  sleep,
  TransientError,
  type Advance,
  type Call,
  type ExternalId,
  type Instance,
  type JsonObject,
  type MachineCall,
  type StateMachine,
} from '@nodepool/core';
import { type AcmeClient, explain } from './acme-client.js';
import { acmeSchema, type Changes } from './acme-driver.js';
import { idOf } from './acme-machines.js';
import {
  when,
  instances,
  deletions,
  creations,
  changed,
  withInstance,
  completeAfterCall,
  completeWhenUnlisted,
  trustsSavedDeletion,
  providers,
  ignoresUnknown,
  createsAgain,
  ticks,
  images,
  leavesImages,
  deletesByNodeId,
  discardsBy,
  schema,
} from './changed-drivers.js';

export interface Defect {
  readonly changes?: Changes;
  /** The package.json, where that is what is wrong. */
  readonly manifest?: JsonObject;
  /** Part of what the kit says. */
  readonly says: RegExp;
}

const UNSURE = { settleRounds: 1, settleMs: 0 };

/** Servers that a defect left open, for the test to close. */
export const leftOpen: Server[] = [];

export const DEFECTS: Readonly<Record<string, Defect>> = {
  'life.launch': { changes: instances((each) => ({ ...each, interfaceIp: undefined })), says: /no interfaceIp/ },
  'life.ready': { changes: instances((each) => ({ ...each, ready: true })), says: /over after \d+ ms/ },
  'life.each-its-own': {
    changes: {
      client: ({ create }) => {
        let first: Promise<string> | undefined;
        return { create: (...args) => (first ??= create(...args)) };
      },
    },
    says: /5 launches gave these instances/,
  },
  'life.fails': {
    changes: instances((each) => ({ ...each, failed: undefined })),
    says: /failed while it booted failed with the code "timeout" instead of "instance-failed"/,
  },
  'life.vanishes': {
    changes: {
      adapter: ({ listInstances }) => {
        const seen = new Map<string, Instance>();
        const listed = async (call: Call): Promise<readonly Instance[]> => {
          for (const each of await listInstances(call)) seen.set(idOf(each.externalId), each);
          return [...seen.values()];
        };
        return { listInstances: listed };
      },
    },
    says: /waited for its time-out/,
  },
  'life.delete': { changes: deletions((machine) => completeAfterCall(machine)), says: /something is left/ },
  'life.delete-twice': {
    changes: { explain: (error) => (error.kind === 'missing' ? new ConfigurationError('who?') : explain(error)) },
    says: /the deletion of node 0000000001 failed with the code "configuration" \(outcome "not-applied"\): who\?/,
  },
  'life.delete-together': {
    changes: {
      client: ({ remove }, cloud) => ({
        remove: (id, call) =>
          cloud.existing().some((each) => each.id === id && each.goneAt !== Infinity)
            ? Promise.reject(new ConfigurationError('it is being deleted'))
            : remove(id, call),
      }),
    },
    says: /it is being deleted/,
  },
  'life.delete-unknown': { changes: providers(ignoresUnknown), says: /what is left after the deletion of one/ },
  'life.delete-unfinished': {
    changes: providers((provider) => ({
      cleanupNode: async () => undefined,
      waitForNodeCleanup: async () => undefined,
      config: provider.config,
    })),
    says: /something is left/,
  },
  'tags.from-creation': {
    changes: {
      client: ({ create, tag }) => ({
        async create(tags, zone, image, call) {
          const id = await create({}, zone, image, call);
          await tag(id, tags, call);
          return id;
        },
      }),
    },
    says: /the tag nodepool_node_id of the instance/,
  },
  'outcome.create-lost': {
    changes: createsAgain(),
    says: /instances after a creation whose answer was lost: 2 instead of 1/,
  },
  'outcome.create-lost-lag': { changes: { patience: UNSURE }, says: /taken for proof/ },
  'outcome.create-refused': {
    changes: { explain: when('refuse', new TransientError('500', { outcome: 'applied' })) },
    says: /the outcome of "500"/,
  },
  'outcome.create-hangs': {
    changes: {
      client: ({ create }, cloud) => ({
        create: (...args) => Promise.race([create(...args), sleep(cloud.clock, 30_000).then(() => create(...args))]),
      }),
    },
    says: /was to fail, and did not/,
  },
  'outcome.any-call': { changes: createsAgain(), says: /more than one instance/ },
  'outcome.delete-lost': { changes: { explain: when('lose-answer', new ConfigurationError('cut')) }, says: /cut/ },
  'outcome.delete-refused': { changes: { explain: when('refuse', new ConfigurationError('500')) }, says: /500/ },
  'lag.launch': { changes: { patience: UNSURE }, says: /vanished/ },
  'lag.delete': { changes: deletions((machine) => completeWhenUnlisted(machine)), says: /something is left/ },
  'lag.delete-unknown': { changes: providers(ignoresUnknown), says: /something is left/ },
  'resume.launch': { changes: creations((make) => make(null, null)), says: /another instance|more than one/ },
  'resume.delete': { changes: trustsSavedDeletion(), says: /something is left/ },
  'resume.machine-create': { changes: creations((make) => make(null, null)), says: /these instances exist/ },
  'resume.machine-delete': { changes: trustsSavedDeletion(), says: /something is left/ },
  'resume.data': {
    changes: creations((make, saved, externalId) => {
      const machine = make(saved, externalId);
      return changed(machine, { save: () => ({ since: new Date(0) as unknown as string }) });
    }),
    says: /does not come back from JSON/,
  },
  'resume.stop-keeps': {
    changes: {
      adapter: (_adapter, { cloud }) => ({ stop: () => cloud.existing().forEach(({ id }) => cloud.destroy(id)) }),
    },
    says: /what exists after the stop/,
  },
  'list.complete': {
    changes: { client: ({ page }) => ({ page: async (from, call) => ({ ...(await page(from, call)), next: null }) }) },
    says: /instances that are listed: 3 instead of 9/,
  },
  'list.rejected': {
    changes: {
      client: ({ page }) => ({ page: (from, call) => page(from, call).catch(() => ({ items: [], next: null })) }),
    },
    says: /of which page 1 failed|whose first page failed/,
  },
  'list.facts': {
    changes: creations((make, saved, externalId) =>
      withInstance(make(saved, externalId), (each) => ({ ...each, resources: { instances: 2 } })),
    ),
    says: /the resources of a launched instance/,
  },
  'list.failed': {
    changes: {
      adapter: ({ listInstances }) => ({
        listInstances: async (call) => (await listInstances(call)).filter(({ failed }) => failed === undefined),
      }),
    },
    says: /an instance that has failed is missing from the list of instances/,
  },
  'leak.offered': {
    changes: providers((provider, parts) => ({
      cleanupLeakedResources: async (round, call) => {
        const listed = await provider.listNodes(call);
        await round.leaked(listed.map(({ externalId, tags }) => ({ kind: 'instance', externalId, name: '', tags })));
        for (const { externalId } of listed) await parts.client().remove(idOf(externalId), call);
      },
    })),
    says: /what exists after the round/,
  },
  'leak.gone': {
    changes: {
      adapter: ({ deleteResource }) => ({
        deleteResource: (resource, call) =>
          deleteResource(resource, call).catch((error: unknown) => {
            throw new ConfigurationError('it is gone', { cause: error });
          }),
      }),
    },
    says: /it is gone/,
  },
  'errors.quota': { changes: { explain: when('quota', new TransientError('no')) }, says: /code and outcome/ },
  'errors.capacity': { changes: { explain: when('capacity', new ConfigurationError('no')) }, says: /code and outcome/ },
  'errors.configuration': { changes: { explain: when('invalid', new TransientError('no')) }, says: /code and outcome/ },
  'errors.auth': { changes: { explain: when('auth', new TransientError('no')) }, says: /code and outcome/ },
  'errors.throttled': {
    changes: { explain: when('throttle', new TransientError('slow down')) },
    says: /the error of a creation that was throttled/,
  },
  'errors.list': {
    changes: { explain: when('refuse', new DriverError('unexpected', '500')) },
    says: /internal error of the cloud failed with the code "unexpected" instead of "transient" or "timeout": 500/,
  },
  'errors.list-auth': {
    changes: { explain: when('auth', new DriverError('unexpected', '401')) },
    says: /credentials are refused failed with the code "unexpected" instead of "auth": 401/,
  },
  'errors.start': {
    changes: { explain: when('auth', new DriverError('unexpected', '401')) },
    says: /a start whose credentials are refused failed with the code "unexpected" instead of "auth"/,
  },
  'quota.limits': {
    changes: {
      adapter: ({ getQuotaLimits }, { cloud }) => ({
        async getQuotaLimits(call) {
          const limits = await getQuotaLimits!(call);
          return limits.subtract(QuotaInformation.use({ instances: cloud.existing().length }));
        },
      }),
    },
    says: /of a quota of 7/,
  },
  'quota.label': {
    changes: {
      adapter: () => ({ getQuotaForLabel: async () => QuotaInformation.use({ instances: 1, cores: 4 }) }),
    },
    says: /the amount of cores/,
  },
  'zones.honoured': {
    changes: { client: ({ create }) => ({ create: (tags, _zone, image, call) => create(tags, 'north', image, call) }) },
    says: /the zone of an instance/,
  },
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
    says: /ten at the same time/,
  },
  'calls.aborted-before': {
    changes: providers((provider) => ({
      listNodes: (call) => provider.listNodes({ ...call, signal: new AbortController().signal }),
    })),
    says: /was to fail, and did not/,
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
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600);
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
  'machine.life': {
    changes: creations((make, saved, externalId) => {
      const machine = make(saved, externalId);
      return Object.create(machine, {
        state: { get: () => (machine.state === 'start' ? 'idle' : machine.state) },
      }) as StateMachine;
    }),
    says: /a new machine/,
  },
  'machine.advance': {
    changes: creations((make, saved, externalId, { client }) => {
      const machine = make(saved, externalId);
      const advance = (call: MachineCall): Advance => {
        if (machine.state === 'creating') void client().create({}, 'north', 'debian', call);
        return machine.advance(call);
      };
      return changed(machine, { advance });
    }),
    says: /asked again at every step/,
  },
  'stop.ends': {
    changes: providers((provider) => ({
      stop: () => undefined,
      join: async () => {
        provider.stop();
        await provider.join();
      },
    })),
    says: /was to fail, and did not|not ended/,
  },
  'stop.nothing-after': { changes: ticks(30_000, false), says: /that a provider left behind/ },
  'stop.idle': { changes: ticks(60_000, true), says: /with nothing to do made/ },
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
  'image.upload': {
    changes: images((manager) => ({
      uploadImage: (upload) => manager.uploadImage({ ...upload, tags: { ...upload.tags, nodepool_build_id: '' } }),
    })),
    says: /the tag nodepool_build_id/,
  },
  'image.streamed': {
    changes: images((manager) => ({
      uploadImage: (upload) =>
        manager.uploadImage({
          ...upload,
          progress: (sent, total) => {
            if (sent === total) upload.progress(sent, total);
          },
        }),
    })),
    says: /at the end only/,
  },
  'image.progress-repeated': {
    changes: images((manager) => ({
      uploadImage: (upload) => {
        let last = -1;
        const progress = (sent: number, total: number): void => {
          if (sent > last) upload.progress(sent, total);
          last = sent;
        };
        return manager.uploadImage({ ...upload, progress });
      },
    })),
    says: /called `progress` not once within \d+ s while the cloud processed the image/,
  },
  'image.delete': {
    changes: images((manager) => {
      const deleted = new Set<ExternalId>();
      return {
        async deleteImage(id, call) {
          if (deleted.has(id)) throw new NotFoundError('there is no such image');
          deleted.add(id);
          await manager.deleteImage(id, call);
        },
      };
    }),
    says: /no such image/,
  },
  'image.list': {
    changes: images((manager) => ({
      listImages: async (call) =>
        (await manager.listImages(call)).filter(({ tags }) => tags['nodepool_provider_name'] === 'acme-1'),
    })),
    says: /is not in the list/,
  },
  'image.upload-refused': { changes: leavesImages(), says: /images after an upload that failed/ },
  'image.upload-aborted': {
    changes: images((manager) => ({
      uploadImage: (upload) => manager.uploadImage({ ...upload, signal: new AbortController().signal }),
    })),
    says: /an upload that was aborted failed with the code "timeout" instead of "aborted"/,
  },
  'image.upload-deadline': {
    changes: images((manager) => ({ uploadImage: (upload) => manager.uploadImage({ ...upload, deadline: Infinity }) })),
    says: /has not ended|until an upload with a deadline/,
  },
  'image.checksum': {
    changes: images((manager) => ({ uploadImage: (upload) => manager.uploadImage({ ...upload, sha256: null }) })),
    says: /was to fail, and did not/,
  },
  'image.launch': {
    changes: { client: ({ create }) => ({ create: (tags, zone, _image, call) => create(tags, zone, 'debian', call) }) },
    says: /from an image that does not exist/,
  },
  'lookalike.node': { changes: deletesByNodeId(), says: /the instance of another installation was deleted/ },
  'lookalike.upload-refused': {
    changes: discardsBy(['nodepool_upload_id', 'nodepool_image_name', 'nodepool_provider_name']),
    says: /the image of another installation did not survive an upload that failed/,
  },
  'lookalike.upload-aborted': {
    changes: discardsBy(IMAGE_TAGS.filter((tag) => tag !== 'nodepool_image_format')),
    says: /the image of another format did not survive an upload that was aborted/,
  },
  'config.accepted': {
    changes: schema((properties) => ({
      ...properties,
      secret: { type: 'string', description: 'Nobody has tried it.' },
    })),
    says: /no accepted example has/,
  },
  'config.described': {
    changes: schema((properties) => ({ ...properties, rate: { type: 'number' } })),
    says: /without a description/,
  },
  'config.unknown': {
    changes: { driver: (driver) => ({ ...driver, schema: { ...acmeSchema, additionalProperties: true } }) },
    says: /an unknown key at .* is accepted/,
  },
  'config.types': {
    changes: schema((properties) => ({ ...properties, rate: { description: 'Anything.' } })),
    says: /does not say which type/,
  },
  'config.refused': {
    changes: {
      driver: (driver) => ({
        ...driver,
        getProviderConfig: (section, context) =>
          driver.getProviderConfig(section, { ...context, problem: () => undefined }),
      }),
    },
    says: /an unknown size at .* is accepted/,
  },
  'config.kept': {
    changes: {
      driver: (driver) => ({
        ...driver,
        getProviderConfig: (section, context) => ({ ...driver.getProviderConfig(section, context), section: {} }),
      }),
    },
    says: /the section that the configuration says/,
  },
  'package.named': {
    manifest: { name: 'x', nodepool: { driver: 'other', api: 1 }, peerDependencies: { '@nodepool/core': '*' } },
    says: /the field `nodepool`/,
  },
  'package.peer': {
    manifest: { name: 'x', nodepool: { driver: 'acme', api: 1 }, dependencies: { '@nodepool/core': '*' } },
    says: /peerDependencies/,
  },
};
