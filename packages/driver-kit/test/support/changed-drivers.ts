/** Derives defective drivers from the correct one. */

import {
  type DriverError,
  isJsonObject,
  silentLogger,
  type Adapter,
  type Call,
  type Driver,
  type ExternalId,
  type ImageManager,
  type ImageTags,
  type Instance,
  type JsonObject,
  type Provider,
  type StateMachine,
} from '@nodepool/core';
import { type Explain, explain } from './acme-client.js';
import { acmeSchema, type Changes, type Parts } from './acme-driver.js';
import { AcmeCreate, AcmeDelete, idOf } from './acme-machines.js';

export function when(kind: string, error: DriverError): Explain {
  return (cause) => (cause.kind === kind ? error : explain(cause));
}

/** Declares that ids are unique, so that the framework does not check them. */
export function withUniqueIds(changes: Changes): Changes {
  return {
    ...changes,
    adapter: (adapter, parts) => ({ ...changes.adapter?.(adapter, parts), uniqueIds: true }),
  };
}

/** Changes the instances that the driver lists. */
export function instances(change: (instance: Instance) => Instance): Changes {
  const adapter: Changes['adapter'] = ({ listInstances }) => ({
    listInstances: async (call) => (await listInstances(call)).map(change),
  });
  return { adapter };
}

/** Replaces the deletion state machines. */
export function deletions(change: (machine: AcmeDelete, saved: unknown) => StateMachine): Changes {
  const adapter: Changes['adapter'] = (_adapter, { client }) => ({
    getDeleteStateMachine: (externalId, saved) => change(new AcmeDelete(client(), externalId), saved),
  });
  return { adapter };
}

type MakeCreation = (
  saved: Parameters<Adapter['getCreateStateMachine']>[1],
  externalId: ExternalId | null,
) => AcmeCreate;

/** Replaces the creation state machines. */
export function creations(
  change: (
    make: MakeCreation,
    saved: Parameters<MakeCreation>[0],
    externalId: ExternalId | null,
    parts: Parts,
  ) => StateMachine,
): Changes {
  const adapter: Changes['adapter'] = (_adapter, parts) => ({
    getCreateStateMachine: (request, saved) => {
      const make: MakeCreation = (kept, externalId) =>
        new AcmeCreate(parts.client(), { ...request, externalId }, kept, {});
      return change(make, saved, request.externalId, parts);
    },
  });
  return { adapter };
}

/** Returns the same machine with other methods. */
export function changed(machine: StateMachine, methods: Partial<Pick<StateMachine, 'advance' | 'save'>>): StateMachine {
  return {
    get state() {
      return machine.state;
    },
    get externalId() {
      return machine.externalId;
    },
    advance: methods.advance ?? ((call) => machine.advance(call)),
    save: methods.save ?? (() => machine.save()),
  };
}

export function withInstance(machine: StateMachine, change: (instance: Instance) => Instance): StateMachine {
  return changed(machine, {
    advance(call) {
      const advance = machine.advance(call);
      if (advance.next !== 'complete' || advance.instance === undefined) return advance;
      return { next: 'complete', instance: change(advance.instance) };
    },
  });
}

export function completeAfterCall(machine: AcmeDelete): StateMachine {
  return changed(machine, {
    advance(call) {
      const advance = machine.advance(call);
      return advance.next === 'listing' ? { next: 'complete' } : advance;
    },
  });
}

export function completeWhenUnlisted(machine: AcmeDelete): StateMachine {
  return changed(machine, {
    advance: (call) =>
      machine.state === 'leaving' && call.listing?.byExternalId(machine.externalId) === undefined
        ? { next: 'complete' }
        : machine.advance(call),
  });
}

/** Treats a deletion that was accepted once as complete. */
export function trustsSavedDeletion(): Changes {
  return deletions((machine, saved) =>
    isJsonObject(saved) && saved['state'] !== 'start'
      ? changed(machine, { advance: () => ({ next: 'complete' }) })
      : machine,
  );
}

/** Replaces methods of the provider; `change` receives the correct provider, whose driver has it on its adapter. */
export function providers(change: (provider: Provider, parts: Parts) => Partial<Provider>): Changes {
  let parts: Parts | undefined;
  return {
    adapter: (_adapter, given) => {
      parts = given;
      return {};
    },
    driver: (driver) => ({
      ...driver,
      getProvider(config) {
        const provider = driver.getProvider(config);
        const different = change(provider, parts!);
        return new Proxy(provider, {
          get(target, key) {
            const source = key in different ? different : target;
            const value: unknown = Reflect.get(source, key, source);
            return typeof value === 'function' ? (value.bind(source) as unknown) : value;
          },
        });
      },
    }),
  };
}

/** Deletes only instances whose external id is in the node's record. */
export function ignoresUnknown(provider: Provider): Partial<Provider> {
  const ignored = new Set<string>();
  return {
    async cleanupNode(cleanup) {
      if (cleanup.externalId === null) ignored.add(cleanup.nodeId);
      else await provider.cleanupNode(cleanup);
    },
    async waitForNodeCleanup(nodeId) {
      if (!ignored.has(nodeId)) await provider.waitForNodeCleanup(nodeId);
    },
  };
}

/** Repeats a creation that failed, under the same attempt. */
export function createsAgain(): Changes {
  return { client: ({ create }) => ({ create: (...args) => create(...args).catch(() => create(...args)) }) };
}

/** Repeats an action, with or without calls, until the provider is stopped, or forever. */
export function ticks(everyMs: number, calls: boolean): Changes {
  const adapter: Changes['adapter'] = ({ start }, { client, context }) => {
    let stopped = false;
    const call = (): Call => ({ signal: new AbortController().signal, deadline: Infinity, log: silentLogger });
    const tick = (): void => {
      if (calls && stopped) return;
      if (calls) void client().page(0, call());
      context().clock.schedule(everyMs, tick);
    };
    return {
      async start(given) {
        await start!(given);
        tick();
      },
      stop: () => {
        stopped = true;
      },
    };
  };
  return { adapter };
}

export function images(change: (manager: ImageManager) => Partial<ImageManager>): Changes {
  return { adapter: ({ images: manager }) => ({ images: { ...manager!, ...change(manager!) } }) };
}

export function leavesImages(): Changes {
  return {
    client: ({ removeImage }) => ({
      removeImage: (id, call) => (id === '' ? removeImage(id, call) : Promise.resolve()),
    }),
  };
}

/** Deletes images of a failed upload by comparing only these tags. */
export function discardsBy(compared: readonly (keyof ImageTags)[]): Changes {
  return images((manager) => ({
    async uploadImage(upload) {
      try {
        return await manager.uploadImage(upload);
      } catch (error) {
        const call: Call = { signal: new AbortController().signal, deadline: Infinity, log: silentLogger };
        for (const { externalId, tags } of await manager.listImages(call)) {
          if (compared.every((tag) => tags[tag] === upload.tags[tag])) await manager.deleteImage(externalId, call);
        }
        throw error;
      }
    },
  }));
}

/** Does not tell copies from originals, since their tags are the same. */
export function unmarkedCopies(): Changes {
  return {
    client: ({ page, images: list }) => ({
      async page(from, call) {
        const { items, next } = await page(from, call);
        return { items: items.map((server) => ({ ...server, copyOf: undefined })), next };
      },
      images: async (call) => (await list(call)).map(({ copyOf: _copyOf, ...image }) => image),
    }),
  };
}

/** Treats every instance with the node's id as the node's. */
export function deletesByNodeId(): Changes {
  return providers((provider, { client }) => ({
    async cleanupNode(cleanup) {
      for (const { externalId, tags } of await provider.listNodes(cleanup)) {
        if (tags['nodepool_node_id'] === cleanup.nodeId) await client().remove(idOf(externalId), cleanup);
      }
    },
    waitForNodeCleanup: async () => undefined,
  }));
}

export function schema(change: (properties: JsonObject) => JsonObject): Changes {
  const driver = (right: Driver): Driver => {
    const properties = isJsonObject(acmeSchema['properties']) ? acmeSchema['properties'] : {};
    return { ...right, schema: { ...acmeSchema, properties: change(properties) } };
  };
  return { driver };
}
